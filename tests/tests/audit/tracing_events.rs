//! Conversions as events for the log of a training run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use gradpact::autograd::label;
use gradpact::prelude::*;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt};

use crate::{Store, leaf_in, of, send};

/// Level and fields of the events of one target.
type Events = Arc<Mutex<Vec<(Level, BTreeMap<String, String>)>>>;

struct Collect(Events);

struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn core::fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl<S: Subscriber> Layer<S> for Collect {
    fn on_event(&self, event: &Event<'_>, _: LayerContext<'_, S>) {
        let mut fields = Fields(BTreeMap::new());
        event.record(&mut fields);
        assert_eq!(event.metadata().target(), "gradpact::gradient");
        self.0.lock().unwrap().push((*event.metadata().level(), fields.0));
    }
}

#[test]
fn each_conversion_at_an_edge_is_an_event_whose_level_tells_whether_somebody_asked_for_it() {
    let events = Events::default();
    let subscriber = tracing_subscriber::registry().with(Collect(Arc::clone(&events)));
    tracing::subscriber::with_default(subscriber, || {
        let x = leaf_in(DType::F32, DType::F32, &[1.0, 2.0]);
        let y = label("first", || Store::new("Undeclared", DType::F16, None).on(&x));
        send(&y, &of(DType::F32, &[0.1, 1e-10])).unwrap();
        let y = Store::new("Declared", DType::F32, Some(DType::BF16)).on(&x);
        send(&y, &of(DType::F32, &[0.1, 1.0])).unwrap();
    });
    let events = events.lock().unwrap();
    let levels: Vec<Level> = events.iter().map(|(level, _)| *level).collect();
    assert_eq!(levels, [Level::WARN, Level::TRACE, Level::INFO, Level::TRACE]);
    let field = |name: &str| events[0].1[name].as_str();
    assert_eq!(field("receiver"), "`Undeclared` [first]");
    assert_eq!([field("received"), field("delivered"), field("source")], ["f32", "f16", "default"]);
    assert_eq!([field("values"), field("became_zero"), field("rounded")], ["2", "1", "1"]);
    assert!(field("message").contains("nobody declared"));
}
