package controller

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/workloads"
	"github.com/musterhq/muster/internal/jobs/write"
)

// observed is what a reconcile has read of a job.
type observed[T client.Object] struct {
	seen  jobs.Seen[T]
	state workloads.State
	// others are the Workloads that the job controls and does not follow, or that are disowned.
	others []*kueue.Workload
	// queue is the queue that the job goes to if it is queued.
	queue  workloads.Queue
	queued bool
	// silent is what follows from batch Jobs that get no answer from the Job controller.
	silent silent
}

// silent is what follows from batch Jobs that get no answer: what the job then does besides its plan.
type silent struct {
	// touches are the writes that touch them, and the deletions of pods which the Job controller leaves.
	touches []write.Write
	// without is an admitted Job without pods, nil if there is none. It has got no answer for so long.
	without *batchv1.Job
	so      time.Duration
	// due is when to look again, zero for never.
	due time.Time
}

// unanswered says how many batch Jobs of a job get no answer while it has this grant.
type unanswered struct {
	grant jobs.Grant
	// jobs is the lowest number of them. Since is when that was reached, and touched when they were last touched.
	jobs           int
	since, touched time.Time
}
