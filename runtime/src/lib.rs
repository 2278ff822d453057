//! gradpact
