package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Cluster is the simulated cluster.
type Cluster struct {
	// GPUs is the quota of the only queue, which has this Strategy, and plans starts if Backfill is set.
	GPUs     int64
	Strategy engine.Strategy
	Backfill bool
	// Objects, if not nil, are the queues, flavors and nodes of the cluster in place of these.
	Objects []engine.Event
	// Options, if not nil, configure the engine in place of Growth and Reservations.
	Options *engine.Options
	// Reservations is for how many jobs a start is planned, 0 for one.
	Reservations int
	// Growth says when jobs grow.
	Growth elastic.Policy
	// ResizeLoses is how long a job makes no progress after it was resized, or stopped and started again. PodsLeaveIn
	// is how long pods take to terminate, in which they keep their GPUs.
	ResizeLoses, PodsLeaveIn time.Duration
	// Restarts are the times at which a new engine takes over, which takes in what is there then.
	Restarts []time.Duration
	// Around, if not nil, is called to run each pass of the engine, so that it can be measured.
	Around func(pass func())
	// Stopped, if not nil, is asked again and again whether to give up: what has not happened by then never does.
	Stopped func() bool
}

const (
	// Namespace is the namespace of jobs and LocalQueues that name none.
	Namespace = "sim"
	queue     = "default"
	podSet    = "worker"
	// GPU is what replicas ask for that do not say otherwise.
	GPU = "nvidia.com/gpu"
)

// epoch is the start of the simulated time. Its value does not matter.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Run simulates the jobs and returns the result. It ends when no event is left.
func (c Cluster) Run(jobs []Job) Result {
	r := &run{Cluster: c, byKey: map[engine.Key]*entry{}}
	r.startEngine()
	r.result.Took, r.result.Waited = make([]time.Duration, len(jobs)), make([]time.Duration, len(jobs))
	for _, at := range c.Restarts {
		r.at(at, r.startEngine)
	}
	for i := range jobs {
		r.result.Took[i], r.result.Waited[i] = -1, -1
		r.at(jobs[i].Arrives, func() { r.arrive(i, &jobs[i]) })
	}
	for (c.Stopped == nil || !c.Stopped()) && r.next() {
		r.decide()
	}
	return r.result
}

// startEngine starts an engine, which takes in the cluster and the jobs that are there.
func (r *run) startEngine() {
	options := engine.Options{Elastic: r.Growth, Reservations: r.Reservations}
	if r.Options != nil {
		options = *r.Options
	}
	r.engine = engine.New(options)
	for _, ev := range r.setUp() {
		r.engine.Apply(ev)
	}
	for _, key := range slices.SortedFunc(maps.Keys(r.byKey), order.CompareKeys) {
		r.observe(r.byKey[key])
	}
}

// setUp returns the events that precede the first job.
func (c Cluster) setUp() []engine.Event {
	if c.Objects != nil {
		return c.Objects
	}
	return []engine.Event{
		engine.FlavorSet{Flavor: engine.Flavor{Name: "default"}},
		engine.ClusterQueueSet{ClusterQueue: engine.ClusterQueue{
			Name: queue, Strategy: c.Strategy, Backfill: c.Backfill, Namespaces: &metav1.LabelSelector{},
			Groups: []flavor.Group{{Resources: []string{GPU}, Flavors: []string{"default"}}},
			Quotas: quota.Quotas{{Flavor: "default", Resource: GPU}: {Nominal: c.GPUs, Borrowing: quota.Unlimited,
				Lending: quota.Unlimited}},
		}},
		engine.LocalQueueSet{LocalQueue: engine.LocalQueue{Key: engine.Key{Namespace: Namespace, Name: queue},
			ClusterQueue: queue}},
	}
}

// run is a simulation in progress.
type run struct {
	Cluster
	clock
	engine *engine.Engine
	byKey  map[engine.Key]*entry
	result Result
	// nextWake is the next time at which to run the engine even without events.
	nextWake time.Duration
}

// entry is a job that has arrived and has not ended.
type entry struct {
	index    int
	workload engine.Workload
	progress progress
	// started is set once it has run; plans counts its plans, so that events of an earlier plan are ignored.
	started bool
	plans   int
	// promised is the start that was promised, negative if none was. ran is how long it has run.
	promised time.Duration
	ran      time.Duration
}

// apiTime returns the current time as the API server stores it, in whole seconds.
func (r *run) apiTime() time.Time { return epoch.Add(r.now.Truncate(time.Second)) }

func (r *run) arrive(index int, job *Job) {
	key := engine.Key{Namespace: cmp.Or(job.Namespace, Namespace), Name: job.Name}
	set := engine.PodSet{}
	if job.Pod != nil {
		set = *job.Pod
	}
	if job.Within != "" {
		set.Topology = &flavor.TopologyRequest{Level: job.Within, Mandatory: true}
	}
	set.PerPod = job.perPod()
	set.Name, set.Count = podSet, job.Max
	if job.Min < job.Max {
		set.MinCount, set.Elastic = job.Min, job.Exponent
	}
	e := &entry{index: index, promised: -1, progress: progress{job: job, since: r.now}, workload: engine.Workload{
		Key: key, UID: job.Name, Queue: cmp.Or(job.Queue, queue), Priority: job.Priority, QueuedAt: r.apiTime(),
		PodSets: []engine.PodSet{set}, Time: job.Time,
	}}
	r.byKey[key] = e
	r.observe(e)
}

// observe sends the workload's present state to the engine.
func (r *run) observe(e *entry) {
	e.workload.Version++
	r.engine.Apply(engine.WorkloadSet{Workload: e.workload})
}

// decide carries out the engine's decisions until there are no more for now.
func (r *run) decide() {
	for {
		decisions := r.pass()
		for _, d := range decisions {
			r.carryOut(d)
		}
		for key, at := range r.engine.Promises {
			r.promise(r.byKey[key], at)
		}
		if len(decisions) == 0 && !r.engine.Busy() {
			break
		}
	}
	if due := r.engine.Due(); !due.IsZero() {
		if when := due.Sub(epoch); when > r.now && when != r.nextWake {
			r.nextWake = when
			r.at(when, func() {})
		}
	}
}

// promise notes a promised start, of which the earliest counts.
func (r *run) promise(e *entry, at time.Time) {
	when := at.Sub(epoch)
	if e.promised < 0 {
		r.result.Promised++
		e.promised = when
	}
	e.promised = min(e.promised, when)
}

// start notes that the job starts.
func (r *run) start(e *entry) {
	if !e.started {
		r.result.Waited[e.index] = r.now - e.progress.job.Arrives
	}
	if e.promised >= 0 {
		r.result.Promises = append(r.result.Promises, Promise{Job: e.index, At: e.promised, Started: r.now})
		if r.now > e.promised+r.PodsLeaveIn {
			r.result.Delayed++
		}
	}
	e.started, e.promised = true, -1
}

// pass runs one pass of the engine.
func (r *run) pass() (decisions []engine.Decision) {
	decide := func() { decisions = r.engine.Decide(epoch.Add(r.now)) }
	if r.Around == nil {
		decide()
	} else {
		r.Around(decide)
	}
	return decisions
}

// carryOut writes a decision and updates the pods.
func (r *run) carryOut(d engine.Decision) {
	e := r.byKey[d.Key]
	switch {
	case d.Admit != nil:
		e.workload.Admission, e.workload.Admitted, e.workload.ReservedAt = d.Admit, true, r.apiTime()
		loses := time.Duration(0)
		if e.started {
			loses = r.ResizeLoses
		}
		r.start(e)
		e.progress.resize(r.now, d.Admit.PodSets[0].Count, loses)
	case d.Resize != nil:
		e.workload.Admission, e.workload.ResizedAt = d.Resize.Admission, r.apiTime()
		r.result.Resizes++
		e.progress.resize(r.now, d.Resize.To, r.ResizeLoses)
	case d.Evict != nil:
		e.workload.Evicted = true
		e.ran += r.now - r.startOf(e)
		e.workload.Time.Ran = e.ran
		e.progress.resize(r.now, 0, 0)
	default:
		e.workload.ReportedCode = d.Why.Code
		r.observe(e)
		return
	}
	r.engine.Apply(engine.Written{Key: d.Key, UID: d.UID, Version: e.workload.Version + 1})
	r.observe(e)
	r.note(e)
	r.plan(e)
	if e.workload.Evicted || e.workload.Admission.PodSets[0].Surplus != nil {
		planned := e.plans
		r.at(r.now+r.PodsLeaveIn, func() {
			if e.plans == planned { // otherwise it has ended, or a later decision has its own event
				r.leave(e)
			}
		})
	}
}

// leave releases what terminated pods held.
func (r *run) leave(e *entry) {
	if e.workload.Evicted {
		e.workload.Admission, e.workload.Admitted, e.workload.Evicted = nil, false, false
	} else {
		lean := *e.workload.Admission
		lean.PodSets = slices.Clone(lean.PodSets)
		lean.PodSets[0].Surplus = nil
		e.workload.Admission = &lean
	}
	r.observe(e)
	r.note(e)
}

// plan schedules the end of the job at its present size.
func (r *run) plan(e *entry) {
	e.plans++
	if plans := e.plans; e.progress.replicas > 0 {
		r.at(r.endOf(e), func() {
			if e.plans == plans {
				r.end(e)
			}
		})
	}
}

// endOf returns when the job ends at its present size: when its work is done, or at its limit.
func (r *run) endOf(e *entry) time.Duration {
	ends, limit := e.progress.ends(), e.progress.job.Time.Limit
	if limit > 0 {
		ends = min(ends, r.startOf(e)+limit-e.ran)
	}
	return ends
}

// startOf returns when the job was started last.
func (r *run) startOf(e *entry) time.Duration { return e.workload.ReservedAt.Sub(epoch) }

func (r *run) end(e *entry) {
	r.engine.Apply(engine.RunEnded{Time: e.workload.Time, Took: e.ran + r.now - r.startOf(e)})
	e.plans++
	e.workload.Admission, e.progress.replicas = nil, 0
	delete(r.byKey, e.workload.Key)
	r.result.Took[e.index] = r.now - e.progress.job.Arrives
	r.result.Makespan = r.now
	r.note(e)
	r.engine.Apply(engine.WorkloadGone{Key: e.workload.Key})
}

// note records what the job holds.
func (r *run) note(e *entry) {
	step := Step{At: r.now, Job: e.index, Replicas: e.progress.replicas}
	if a := e.workload.Admission; a != nil {
		for resource, each := range a.PodSets[0].Usage {
			one := each / int64(a.PodSets[0].Count)
			step.Held = a.PodSets[0].Count + int32(a.PodSets[0].Surplus[resource]/one)
			break
		}
	}
	r.result.Steps = append(r.result.Steps, step)
}
