package simulate

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/api/config/v1alpha1"
	"github.com/musterhq/muster/internal/admission/whatif"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/sim"
)

// Options say how jobs are played.
type Options struct {
	// Configuration is that of the operator, and complete.
	Configuration *v1alpha1.Configuration
	// Resource is what a processor of the log is, PerPod how many of them a pod has at most.
	Resource corev1.ResourceName
	PerPod   int32
	// WithoutLimits forgets the times that users requested. Jobs run as long as with them.
	WithoutLimits bool
}

// Outcome is how the jobs fared.
type Outcome struct {
	setup  *Setup
	jobs   []sim.Job
	result sim.Result
	name   corev1.ResourceName
}

// Run plays the jobs, which it changes, until all have ended that can, or the context is done.
func Run(ctx context.Context, s *Setup, jobs []sim.Job, o Options) (*Outcome, error) {
	if err := s.assign(jobs); err != nil {
		return nil, err
	}
	for i := range jobs {
		if shape(&jobs[i], o.Resource, o.PerPod); o.WithoutLimits {
			jobs[i].Time.Limit = 0
		}
	}
	options := whatif.Options(o.Configuration)
	options.CheckWaitingEvery = 0 // a safety net of the live system
	cluster := sim.Cluster{Options: &options, Objects: whatif.Events(o.Configuration, s.objects()...),
		ResizeLoses: o.Configuration.Elasticity.ResizeCost.Duration,
		Stopped:     func() bool { return ctx.Err() != nil }}
	out := &Outcome{setup: s, jobs: jobs, name: o.Resource, result: cluster.Run(jobs)}
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	return out, nil
}

// Row is how the jobs of a ClusterQueue, or all jobs, fared. Durations are in seconds.
type Row struct {
	Queue        string `json:"queue,omitempty"`
	Jobs         int    `json:"jobs"`
	NeverStarted int    `json:"neverStarted,omitempty"`
	Mean         int64  `json:"meanWaitSeconds"`
	Median       int64  `json:"medianWaitSeconds"`
	P90          int64  `json:"p90WaitSeconds"`
	P99          int64  `json:"p99WaitSeconds"`
	Longest      int64  `json:"longestWaitSeconds"`
	// Slowdown is the mean bounded slowdown.
	Slowdown float64 `json:"boundedSlowdown"`
	// Utilization is the share of the quota that jobs held until the last job was submitted, absent without quota.
	Utilization *float64 `json:"utilization,omitempty"`
	Kept        int      `json:"promisesKept"`
	Delayed     int      `json:"promisesDelayed"`
}

// Rows returns a row for each ClusterQueue that has a LocalQueue, and one for all jobs.
func (o *Outcome) Rows() (queues []Row, all Row) {
	of, names := o.setup.queuesOf()
	for _, name := range names {
		quota := o.setup.quotaOf(o.name, func(object client.Object) bool {
			return kindOf(object) == "ClusterQueue" && object.GetName() == name
		})
		queues = append(queues, o.row(name, quota, func(j *sim.Job) bool {
			return of[engine.Key{Namespace: j.Namespace, Name: j.Queue}] == name
		}))
	}
	return queues, o.row("", o.setup.quotaOf(o.name, func(client.Object) bool { return true }),
		func(*sim.Job) bool { return true })
}

// row sums up some jobs, of queues with this quota.
func (o *Outcome) row(name string, quota float64, counts func(*sim.Job) bool) Row {
	f := o.result.Figures(o.jobs, string(o.name), counts)
	row := Row{Queue: name, Jobs: f.Jobs, NeverStarted: f.Unstarted, Mean: int64(f.Mean.Seconds()),
		Median: int64(f.Median.Seconds()), P90: int64(f.P90.Seconds()), P99: int64(f.P99.Seconds()),
		Longest: int64(f.Longest.Seconds()), Slowdown: f.Slowdown, Kept: f.Kept, Delayed: f.Delayed}
	if available := quota * f.Within.Seconds(); available > 0 {
		share := f.Used / available
		row.Utilization = &share
	}
	return row
}
