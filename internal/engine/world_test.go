package engine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// world is an engine under random events, with an API server that stores what was written.
type world struct {
	options Options
	engine  *Engine
	log     []entry
	decided []Decision
	team    CohortSet // in the cohort lab, or on its own
	queues  map[string]ClusterQueueSet
	jobs    map[string]WorkloadSet // as stored in the API server
	open    []Decision             // not written yet
	reasons map[string]reason.Code // reasons of jobs, not written yet
	locals  map[Key]LocalQueueSet
	clock   time.Time
	wide    *wideWorld         // nil in a world of cpu in one flavor
	nodes   *nodeWorld         // nil in a world of quota alone
	elastic bool               // jobs may be resized
	learns  bool               // how long jobs took is learned by kind, which a restart forgets
	growth  bool               // open queues, in which most jobs are elastic: see growthStep
	untried map[string]attempt // jobs whose admission was refused, and not tried since
	churn   *churnWorld        // nil in a world whose objects stay
}

// entry is an event, or the time of a pass.
type entry struct {
	event     Event
	decidedAt time.Time
}

var queueNames = []string{"p", "q", "r"}

// emptyWorld returns a world without objects.
func emptyWorld(options Options) *world {
	return &world{options: options, engine: New(options), queues: map[string]ClusterQueueSet{},
		jobs: map[string]WorkloadSet{}, clock: epoch,
		untried: map[string]attempt{}, reasons: map[string]reason.Code{}, locals: map[Key]LocalQueueSet{}}
}

// newEngine returns another engine like that of the world, without objects.
func (w *world) newEngine() *Engine {
	e := New(w.options)
	e.budget = w.engine.budget
	return e
}

// newWorld returns a world with random options and queues of cpu in one flavor.
func newWorld(t *rapid.T) *world {
	options := drawOptions(t)
	w := emptyWorld(options)
	w.engine.budget = rapid.SampledFrom([]int{passBudget, passBudget, 1, 4}).Draw(t, "budget of a pass")
	w.team = CohortSet{Cohort{Name: "team"}}
	w.apply(defaultFlavor)
	for _, name := range namespaces {
		w.setNamespace(t, name)
	}
	if rapid.Bool().Draw(t, "a cohort within the cohort") {
		w.team.Parent = "lab"
	}
	w.team.Weight = drawWeight(t, "team")
	w.apply(w.team)
	for _, name := range queueNames {
		w.setQueue(t, name)
		for _, namespace := range namespaces {
			w.setLocal(LocalQueueSet{LocalQueue{Key: Key{Namespace: namespace, Name: name}, ClusterQueue: name}})
		}
	}
	return w
}

// drawOptions enables fair sharing in half of the worlds.
func drawOptions(t *rapid.T) Options {
	strategies := rapid.SampledFrom([][]preempt.Strategy{nil, nil, nil,
		{preempt.LessThanOrEqualToFinalShare, preempt.LessThanInitialShare},
		{preempt.LessThanOrEqualToFinalShare}, {preempt.LessThanInitialShare},
	}).Draw(t, "strategies of fair sharing")
	var options Options
	if strategies != nil {
		options.FairSharing = &FairSharing{Strategies: strategies}
	}
	options.BlockUntilReady = rapid.SampledFrom([]Block{BlockNone, BlockNone, BlockNone, BlockQueue, BlockAll}).Draw(t,
		"which workloads wait for ready pods")
	options.Reservations = rapid.IntRange(0, 3).Draw(t, "starts planned")
	if rapid.Bool().Draw(t, "LocalQueues are compared") {
		options.AdmissionFairSharing = &AdmissionFairSharing{HalfLife: 7 * time.Second, Interval: 3 * time.Second}
	}
	return options
}

// drawWeight draws a fair-sharing weight, or nil for the default.
func drawWeight(t *rapid.T, of string) *quota.Weight {
	return rapid.SampledFrom([]*quota.Weight{nil, nil, weight(0), weight(quota.One / 2), weight(3 * quota.One)}).
		Draw(t, "weight of "+of)
}

func weight(w quota.Weight) *quota.Weight { return &w }

// setQueue creates or changes the ClusterQueue at random.
func (w *world) setQueue(t *rapid.T, name string) {
	cohort := rapid.SampledFrom([]string{"lab", "lab", "team"}).Draw(t, "cohort of "+name)
	q := queueOf(name, cohort, rapid.Int64Range(0, 8).Draw(t, "quota of "+name))
	q.Strategy = rapid.SampledFrom([]Strategy{BestEffort, BestEffort, Strict}).Draw(t, "strategy of "+name)
	q.Preemption = preempt.Policy{
		WithinQueue: preempt.Rule(rapid.IntRange(0, 2).Draw(t, name+" within")),
		Reclaim: rapid.SampledFrom([]preempt.Rule{preempt.Never, preempt.LowerPriority, preempt.Any}).Draw(t,
			name+" reclaims"),
	}
	if q.Preemption.Reclaim != preempt.Never {
		q.Preemption.WhileBorrowing = rapid.Bool().Draw(t, name+" while borrowing")
	}
	q.Preemption.Standing = preempt.Standing{
		Rank:      rapid.SampledFrom([]int32{0, 0, 1, 2}).Draw(t, name+" ranks"),
		Protected: rapid.IntRange(0, 3).Draw(t, name+" is protected if 0") == 0}
	q.Weight, q.ByUsage = drawWeight(t, name), rapid.Bool().Draw(t, name+" is ordered by usage")
	q.Namespaces = rapid.SampledFrom([]*metav1.LabelSelector{{}, {}, {}, {MatchLabels: map[string]string{"team": "red"}}}).
		Draw(t, name+" accepts")
	q.Stopped = rapid.IntRange(0, 9).Draw(t, name+" is stopped if 0") == 0
	q.Backfill = rapid.Bool().Draw(t, name+" plans starts")
	q.Durations = durations.Bounds{Max: drawDuration(t, "maximum of "+name), Default: drawDuration(t, "default of "+name)}
	w.queues[name] = q
	w.apply(q)
}

// drawDuration draws a duration, mostly none.
func drawDuration(t *rapid.T, what string) time.Duration {
	return time.Second * time.Duration(rapid.SampledFrom([]int{0, 0, 0, 3, 10, 30, 600, 7200}).Draw(t, what))
}

// apply logs the event, applies it to the engine, and drops the open decisions that it supersedes.
func (w *world) apply(ev Event) {
	w.log = append(w.log, entry{event: ev})
	if w.churn != nil {
		w.churn.note(ev)
	}
	w.engine.Apply(ev)
	superseded := w.engine.TakeSuperseded()
	w.open = slices.DeleteFunc(w.open, func(d Decision) bool { return superseded[d.Key] == d.Serial })
}

// decide runs a pass one second after the last one.
func (w *world) decide() []Decision {
	w.clock = w.clock.Add(time.Second)
	return w.decideNow()
}

// decideNow runs a pass at the time of the last one. It fails if the engine rests then although a workload waits that
// could be admitted: nothing has made it ready.
func (w *world) decideNow() []Decision {
	w.log = append(w.log, entry{decidedAt: w.clock})
	out := decideAll(w.engine, w.clock)
	if missed := missedWaiting(w.engine); len(missed) > 0 {
		panic(fmt.Sprintf("%v wait although they could be admitted: nothing made them ready", missed))
	}
	w.decided = append(w.decided, out...)
	for _, d := range out {
		if d.Why.Code != reason.None {
			w.reasons[d.Key.Name] = d.Why.Code
		}
		if d.Try != nil || d.Admit != nil || d.Evict != nil || d.Replace != nil || d.Resize != nil || d.Withdraw {
			w.startWrite(d)
		}
	}
	return out
}

// startWrite starts the write of the decision. A withdrawn admission is dropped, unless its write has begun.
func (w *world) startWrite(d Decision) {
	if !d.Withdraw {
		w.open = slices.DeleteFunc(w.open,
			func(older Decision) bool { return older.Key == d.Key && (older.Replace != nil || older.Resize != nil) })
		w.open = append(w.open, d)
		return
	}
	i := slices.IndexFunc(w.open, func(older Decision) bool { return older.Key == d.Key && older.Admit != nil })
	if i >= 0 && len(w.log)%2 == 0 {
		w.open[i] = d
	}
}

func (w *world) names() []string { return slices.Sorted(maps.Keys(w.jobs)) }

// answer is how the write of a decision ends.
type answer int

const (
	accepted answer = iota
	lost
	rejected
)

// write makes the API server accept, lose or reject the i-th open decision.
func (w *world) write(i int, how answer) {
	d := w.open[i]
	w.open = slices.Delete(w.open, i, i+1)
	job, there := w.jobs[d.Key.Name]
	if w.noteTrial(d, job, how); d.Try != nil {
		w.answerTrial(d, job, how)
		return
	}
	superseded := !there || job.UID != d.UID ||
		d.Admit != nil && (job.Admission != nil || job.Generation != d.Generation) ||
		d.Admit == nil && job.Admission == nil || (d.Replace != nil || d.Resize != nil) && job.Evicted ||
		d.Resize != nil && job.Admission != nil && job.Admission.PodSets[0].Count != d.Resize.From
	switch {
	case how == lost || superseded || d.Withdraw:
		w.apply(Failed{Key: d.Key, UID: d.UID, Serial: d.Serial})
		return
	case how == rejected:
		w.apply(Refused{Key: d.Key, UID: d.UID, Serial: d.Serial, Generation: d.Generation,
			Message: "a policy says no", At: w.clock})
		return
	}
	job.Version++
	switch {
	case d.Admit != nil:
		job.Admission, job.Admitted, job.ReservedAt, job.Evicted, job.LostNodes, job.Unheld, job.ReportedCode = d.Admit,
			len(d.Admit.Checks) == 0, w.clock, false, false, false, ""
	case d.Replace != nil:
		job.Admission = d.Replace
	case d.Resize != nil:
		job.Admission, job.ResizedAt = d.Resize.Admission, w.clock
	default:
		job.Evicted, job.LostNodes = true, d.Evict.Cause == preempt.NodeFailures
	}
	w.jobs[d.Key.Name] = job
	w.apply(Written{Key: d.Key, UID: d.UID, Serial: d.Serial, Version: job.Version})
}

// step makes one random change.
func (w *world) step(t *rapid.T) {
	if w.growth {
		w.growthStep(t)
		return
	}
	if w.nodes != nil && w.nodes.losses {
		w.lossStep(t)
		return
	}
	if w.churn != nil && rapid.IntRange(0, 2).Draw(t, "churn if 0") == 0 {
		w.churnStep(t)
		return
	}
	if w.wide != nil && rapid.Bool().Draw(t, "wide") {
		w.wideStep(t)
		return
	}
	if w.nodes != nil && rapid.Bool().Draw(t, "on nodes") {
		w.nodeStep(t)
		return
	}
	if rapid.IntRange(0, 5).Draw(t, "event around the jobs if 0") == 0 {
		w.environmentStep(t)
		return
	}
	names := w.names()
	switch kind := rapid.IntRange(0, 19).Draw(t, "kind of event"); {
	case kind < 7 || len(names) == 0:
		name := fmt.Sprintf("j%03d", len(w.log))
		ev := job(name, rapid.SampledFrom(queueNames).Draw(t, "queue"), rapid.Int32Range(0, 4).Draw(t, "pods"),
			rapid.Int64Range(0, 4).Draw(t, "cpu"), rapid.Int32Range(-1, 1).Draw(t, "priority"), len(w.log))
		if rapid.Bool().Draw(t, "can start smaller") {
			ev.PodSets[0].MinCount = min(1, ev.PodSets[0].Count)
		}
		if w.elastic && ev.PodSets[0].Count > 0 && rapid.Bool().Draw(t, "elastic") {
			ev.PodSets[0].MinCount = rapid.Int32Range(1, ev.PodSets[0].Count).Draw(t, "minimum")
			ev.PodSets[0].Elastic = rapid.SampledFrom([]float64{0.6, 0.85, 1}).Draw(t, "exponent")
		}
		ev.PodSets[0].Reclaimable = drawEnded(t, ev.PodSets[0])
		w.submit(t, ev)
	case kind < 9:
		name := rapid.SampledFrom(names).Draw(t, "finished job")
		w.apply(RunEnded{Time: w.jobs[name].Time, Took: drawDuration(t, "took")})
		w.apply(WorkloadGone{w.jobs[name].Key})
		delete(w.jobs, name)
	case kind < 13 && len(w.open) > 0:
		w.write(rapid.IntRange(0, len(w.open)-1).Draw(t, "written"),
			rapid.SampledFrom([]answer{accepted, accepted, accepted, accepted, lost, rejected}).Draw(t, "answer"))
	case kind < 15: // the watch delivers the state of the API server, or the job has stopped
		name := rapid.SampledFrom(names).Draw(t, "observed job")
		w.observe(name)
	case kind < 17:
		w.hold(t, rapid.SampledFrom(names).Draw(t, "held back"))
	case kind < 18:
		w.setQueue(t, rapid.SampledFrom(queueNames).Draw(t, "reconfigured"))
	default:
		w.decide()
	}
}

// drawEnded draws how many pods of a new job have ended in an earlier attempt. That is not reported for elastic jobs.
func drawEnded(t *rapid.T, ps PodSet) int32 {
	if ps.Elastic > 0 || ps.Tied() || !rapid.Bool().Draw(t, "some have ended") {
		return 0
	}
	return rapid.Int32Range(0, ps.Count).Draw(t, "ended")
}

// due returns when a job may grow, or a rejected decision is retried: in an hour if the clock was set back by one, with
// many samples of the LocalQueues' usage in between.
func (w *world) due() (at time.Time, some bool) {
	at = earlier(w.engine.waiting.First(waiting.Grow), w.engine.waiting.First(waiting.RetryRefused))
	return at, !at.IsZero()
}

// settle completes everything in progress until nothing more happens: decisions are written, some of them a pass later
// than others, and evicted jobs stop. It fails if that does not end.
func (w *world) settle(t *rapid.T) {
	late := rapid.IntRange(0, 3).Draw(t, "written a pass later")
	for round := range 200 {
		if len(w.decide()) == 0 && len(w.open) == 0 && !w.leaving() && !w.starting() {
			due, some := w.due()
			if !some {
				return
			}
			w.clock = due
			continue
		}
		for len(w.open) > late*(round%2) {
			w.write(0, accepted)
		}
		for _, name := range slices.Sorted(maps.Keys(w.reasons)) {
			w.reportReason(name)
		}
		w.settlePods()
		for _, name := range w.names() {
			w.observe(name)
		}
	}
	w.describe(t)
	t.Fatal("decisions never end")
}

// observe sends the job's state in the API server to the engine, after its pods are gone if it was evicted, or ready if
// not.
func (w *world) observe(name string) {
	ev := w.jobs[name]
	switch {
	case ev.Evicted:
		ev.Admission, ev.Admitted, ev.Evicted, ev.Ready = nil, false, false, false
		ev.Version++
	case ev.Unheld:
		ev.Unheld = false
		ev.Version++
	case ev.Admission.HasSurplus():
		given := *ev.Admission
		given.PodSets = slices.Clone(given.PodSets)
		given.PodSets[0].Surplus = nil
		ev.Admission = &given
		ev.Version++
	case ev.Admission != nil && !ev.Admitted:
		ev.Admitted = true // its checks are ready
		ev.Version++
	case ev.Admission != nil && !ev.Ready:
		ev.Ready = true
		ev.Version++
	}
	w.jobs[name] = ev
	w.apply(ev)
}

// leaving reports whether any job is being evicted, or pods of one that has ended are left.
func (w *world) leaving() bool {
	if w.nodes != nil {
		for _, p := range w.nodes.pods {
			if _, there := w.jobs[p.Workload.Name]; !there && p.Workload != (Key{}) {
				return true
			}
		}
	}
	for _, job := range w.jobs {
		if job.Evicted || job.Unheld || job.Admission.HasSurplus() {
			return true
		}
	}
	return false
}

// starting reports whether any job is admitted whose pods are not ready.
func (w *world) starting() bool {
	for _, job := range w.jobs {
		if job.Admission != nil && !job.Ready {
			return true
		}
	}
	return false
}

// checkReplay checks that a new engine makes the same decisions when the log of events and passes is replayed.
func (w *world) checkReplay(t *rapid.T) {
	replayed := w.newEngine()
	var again []Decision
	for _, entry := range w.log {
		if entry.event != nil {
			replayed.Apply(entry.event)
		} else {
			again = append(again, decideAll(replayed, entry.decidedAt)...)
		}
	}
	if diff := cmp.Diff(w.decided, again); diff != "" {
		t.Fatalf("replay differs (-live +replayed):\n%s", diff)
	}
}

// describe logs the events up to now.
func (w *world) describe(t *rapid.T) {
	for _, d := range w.decided[max(0, len(w.decided)-16):] {
		t.Logf("%s: admit %v, resize %+v, evict %+v, why %s %s", d.Key.Name, d.Admit, d.Resize, d.Evict,
			d.Why.Code, d.Why.Message())
	}
	for _, name := range queueNames {
		t.Logf("%s: %+v %+v", name, w.queues[name].Quotas, w.queues[name].Preemption)
	}
	for _, name := range w.names() {
		j := w.jobs[name]
		t.Logf("%s waits for %s: %s", name, w.engine.workloads[j.Key].Why.Code, w.engine.workloads[j.Key].Why.Message())
		t.Logf("%s in %s priority %d inactive %v gated %q backs off %q refused %q unheld %v %+v queued %v holds %v",
			j.Key, w.locals[j.LocalKey()].ClusterQueue, j.Priority, j.Inactive, j.Gated, j.BackoffReason, j.Refused, j.Unheld,
			j.PodSets, j.QueuedAt.Sub(epoch), j.Admission)
	}
}
