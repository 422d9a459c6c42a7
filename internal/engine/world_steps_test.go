package engine

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/durations"
)

// namespaces have a LocalQueue for each ClusterQueue.
var namespaces = []string{"ns", "other"}

// submit creates the job in one of the namespaces.
func (w *world) submit(t *rapid.T, ev WorkloadSet) {
	ev.Key.Namespace = rapid.SampledFrom([]string{"ns", "ns", "other"}).Draw(t, "namespace")
	ev.Time = durations.Known{Limit: drawDuration(t, "limit"), Expected: drawDuration(t, "expected")}
	if w.learns {
		ev.Time.Kind = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "kind")
	}
	w.jobs[ev.Key.Name] = ev
	w.apply(ev)
}

func (w *world) setNamespace(t *rapid.T, name string) {
	w.apply(NamespaceSet{Name: name,
		Labels: labels.Set{"team": rapid.SampledFrom([]string{"red", "red", "blue"}).Draw(t, "team of "+name)}})
}

func (w *world) setLocal(ev LocalQueueSet) {
	w.locals[ev.Key] = ev
	w.apply(ev)
}

// hold blocks or unblocks the job: by a gate, deactivation, a backoff, a LimitRange violation, or by its own pods that
// were started before it had quota.
func (w *world) hold(t *rapid.T, name string) {
	ev := w.jobs[name]
	toggle := func(s *string, to string) {
		if *s == "" {
			*s = to
		} else {
			*s = ""
		}
	}
	switch rapid.IntRange(0, 6).Draw(t, "by what") {
	case 0, 1:
		ev.Inactive = !ev.Inactive
		ev.Generation++
	case 2:
		toggle(&ev.Gated, "a controller")
	case 3:
		toggle(&ev.BackoffReason, "waits for a while")
	case 4:
		toggle(&ev.Refused, "it asks for too much")
	case 5:
		if ev.PodSets[0].Elastic > 0 {
			ev.PodSets = slices.Clone(ev.PodSets)
			if rapid.Bool().Draw(t, "asks for more") {
				ev.PodSets[0].Count += rapid.Int32Range(1, 3).Draw(t, "more pods")
				ev.Generation++
			}
			ev.PodSets[0].Wanted = rapid.Int32Range(0, ev.PodSets[0].Count).Draw(t, "wants")
		}
	default:
		ev.Unheld = ev.Admission == nil && !ev.Unheld
	}
	ev.Version++
	w.jobs[name] = ev
	w.apply(ev)
}

// reportReason writes the job's reason for waiting to the API server.
func (w *world) reportReason(name string) {
	why := w.reasons[name]
	delete(w.reasons, name)
	if ev, there := w.jobs[name]; there && ev.Admission == nil {
		ev.ReportedCode = why
		ev.Version++
		w.jobs[name] = ev
		w.apply(ev)
	}
}

// environmentStep makes one random change around the jobs: to LocalQueues, namespaces, reported reasons, or the clock.
func (w *world) environmentStep(t *rapid.T) {
	l, there := w.locals[Key{Namespace: rapid.SampledFrom(namespaces).Draw(t, "namespace of the LocalQueue"),
		Name: rapid.SampledFrom(queueNames).Draw(t, "LocalQueue")}]
	switch kind := rapid.IntRange(0, 11).Draw(t, "kind of event around the jobs"); {
	case kind < 2:
		w.setNamespace(t, rapid.SampledFrom(namespaces).Draw(t, "moves"))
	case kind < 4 && there:
		l.Stopped = !l.Stopped
		w.setLocal(l)
	case kind < 6 && there:
		l.ClusterQueue = rapid.SampledFrom(queueNames).Draw(t, "points to")
		l.Weight = drawWeight(t, "the LocalQueue")
		w.setLocal(l)
	case kind < 7 && there:
		delete(w.locals, l.Key)
		w.apply(LocalQueueDeleted{l.Key})
	case kind < 8:
		for _, namespace := range namespaces {
			for _, name := range queueNames {
				if key := (Key{Namespace: namespace, Name: name}); w.locals[key].Key != key {
					w.setLocal(LocalQueueSet{LocalQueue{Key: key, ClusterQueue: name}})
				}
			}
		}
	case kind < 9:
		w.clock = w.clock.Add(rapid.SampledFrom([]time.Duration{-time.Hour, -time.Minute, time.Minute, time.Hour}).Draw(t,
			"the clock jumps"))
	default:
		if names := slices.Sorted(maps.Keys(w.reasons)); len(names) > 0 {
			w.reportReason(rapid.SampledFrom(names).Draw(t, "reported job"))
		}
	}
}

// queueOf returns the ClusterQueue whose quota the job holds, or in which it waits.
func (w *world) queueOf(key Key) ClusterQueueSet {
	return w.queues[w.engine.workloads[key].ClusterQueue.Name]
}
