// Package hotspot tells a service which of its keys are hot while they are: a
// flash sale's, a crawler's, those of a statement that has gone slow.
//
//	hot, err := hotspot.New(hotspot.Config[string]{Rate: 1000}) // a second
//	...
//	go hot.Run(ctx, func(c hotspot.Change[string]) {
//		for _, key := range c.Left {
//			local.Remove(key.Key)
//		}
//	})
//	...
//	if hot.Observe(key) { // from any number of goroutines
//		return local.Get(key)
//	}
//
// A [Detector] counts in a sliding window of package window, or in any other
// [Source]. A scan, once a slot, ranks the keys, applies thresholds and
// [Rule]s and publishes the hot set. Between scans the set does not change, so
// that looking a key up takes no lock and no allocation.
//
// # Cost
//
// [Detector.Hot] takes one atomic load, a hash and a probe of a table four
// times as large as the hot set; [Detector.Observe] takes what the source's Add
// does and an atomic add more. BenchmarkHot, BenchmarkObserve and BenchmarkScan
// measure them. Allow and deny rules by pattern cost more; see [Rule].
//
// # Time
//
// Time is a parameter, as in package window: methods that end in At take it and
// the others are shorthand for time.Now(). The only goroutine is the one that a
// caller gives to Run. A clock that steps back loses nothing: for the
// hysteresis no time has passed then.
//
// # Callbacks
//
// Text, Configure and the methods of a Source are called by updates, reads and
// scans, some of them while others wait: they must not call the Detector or
// Group. The function that a scan hands its outcome to may. If any of them
// panics, so does the method that called it; no lock stays held, and all but
// that call goes on as before: a scan whose Text panics publishes nothing, and
// of a change that a function panicked over, only that function has not heard.
// Run ends, and with it the scans. [Group.SetRules] may have reached some of the
// Detectors by then.
package hotspot
