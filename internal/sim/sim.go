package sim

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Cluster is the simulated cluster: one queue whose quota is its GPUs.
type Cluster struct {
	GPUs     int64
	Strategy engine.Strategy
	// Growth says when jobs grow.
	Growth elastic.Policy
	// ResizeLoses is how long a job makes no progress after it was resized, or stopped and started again. PodsLeaveIn
	// is how long pods take to terminate, in which they keep their GPUs.
	ResizeLoses, PodsLeaveIn time.Duration
	// Around, if not nil, is called to run each pass of the engine, so that it can be measured.
	Around func(pass func())
}

const (
	namespace = "sim"
	queue     = "default"
	gpu       = "nvidia.com/gpu"
	podSet    = "worker"
)

// epoch is the start of the simulated time. Its value does not matter.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Run simulates the jobs and returns the result. It ends when no event is left.
func (c Cluster) Run(jobs []Job) Result {
	r := &run{Cluster: c, engine: engine.New(engine.Options{Elastic: c.Growth}), byKey: map[engine.Key]*entry{}}
	r.result.Took = make([]time.Duration, len(jobs))
	for _, ev := range c.setUp() {
		r.engine.Apply(ev)
	}
	for i := range jobs {
		r.result.Took[i] = -1
		r.at(jobs[i].Arrives, func() { r.arrive(i, &jobs[i]) })
	}
	for r.next() {
		r.decide()
	}
	return r.result
}

// setUp returns the events that precede the first job.
func (c Cluster) setUp() []engine.Event {
	return []engine.Event{
		engine.FlavorSet{Flavor: engine.Flavor{Name: "default"}},
		engine.ClusterQueueSet{ClusterQueue: engine.ClusterQueue{
			Name: queue, Strategy: c.Strategy, Namespaces: &metav1.LabelSelector{},
			Groups: []flavor.Group{{Resources: []string{gpu}, Flavors: []string{"default"}}},
			Quotas: quota.Quotas{{Flavor: "default", Resource: gpu}: {Nominal: c.GPUs, Borrowing: quota.Unlimited,
				Lending: quota.Unlimited}},
		}},
		engine.LocalQueueSet{LocalQueue: engine.LocalQueue{Key: engine.Key{Namespace: namespace, Name: queue},
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
}

// apiTime returns the current time as the API server stores it, in whole seconds.
func (r *run) apiTime() time.Time { return epoch.Add(r.now.Truncate(time.Second)) }

func (r *run) arrive(index int, job *Job) {
	key := engine.Key{Namespace: namespace, Name: job.Name}
	set := engine.PodSet{Name: podSet, Count: job.Max, PerPod: map[string]int64{gpu: 1}}
	if job.Min < job.Max {
		set.MinCount, set.Elastic = job.Min, job.Exponent
	}
	e := &entry{index: index, progress: progress{job: job, since: r.now}, workload: engine.Workload{
		Key: key, UID: job.Name, Queue: queue, Priority: job.Priority, QueuedAt: r.apiTime(), PodSets: []engine.PodSet{set},
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
		e.started = true
		e.progress.resize(r.now, d.Admit.PodSets[0].Count, loses)
	case d.Resize != nil:
		e.workload.Admission, e.workload.ResizedAt = d.Resize.Admission, r.apiTime()
		r.result.Resizes++
		e.progress.resize(r.now, d.Resize.To, r.ResizeLoses)
	case d.Evict != nil:
		e.workload.Evicted = true
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
		r.at(e.progress.ends(), func() {
			if e.plans == plans {
				r.end(e)
			}
		})
	}
}

func (r *run) end(e *entry) {
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
		step.Held = int32(a.PodSets[0].Usage[gpu] + a.PodSets[0].Surplus[gpu])
	}
	r.result.Steps = append(r.result.Steps, step)
}
