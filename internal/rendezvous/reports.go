package rendezvous

import (
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/rendezvous/progress"
	"github.com/musterhq/muster/internal/workload"
)

// How often a job may report: its pod of the lowest rank by itself, and all other pods together, so that they cannot
// silence it. Reports of pods that nothing is kept of share one budget.
const (
	reportsOfFirst, burstOfFirst   = rate.Limit(1), 10
	reportsOfOthers, burstOfOthers = rate.Limit(5), 50
	reportsUnkept, burstUnkept     = rate.Limit(50), 500
)

// errTooOften is returned to a pod whose job reports too often.
var errTooOften = errors.New("the job reports its progress too often")

// reports keeps what running jobs report of their progress, and has their expected ends written. It has an entry for
// each Workload that runs, whether its job reports or not. What is reported is kept in memory only: after a restart of
// the operator the annotation of the Workload counts until training code reports again.
type reports struct {
	client client.Client
	clock  clock.WithTicker
	log    logr.Logger
	// unkept bounds the reports of pods whose job has no running Workload.
	unkept *rate.Limiter

	mu   sync.Mutex
	runs map[progress.Key]*run
	// byJob finds the run of a job, by the UID of the job, which controls the Workload.
	byJob  map[types.UID]progress.Key
	writes progress.Writes
	// wake holds an element once more is to be written.
	wake chan struct{}
}

// run is a Workload that runs.
type run struct {
	progress.Run
	job types.UID
	// admitted is when it was admitted. A Workload that is admitted again is another run.
	admitted time.Time
	// written is the expected end in the Workload's annotation, zero if there is none of this run.
	written time.Time
	// first and others bound how often the pod of the lowest rank, and all other pods, may report.
	first, others *rate.Limiter
}

// newReports returns reports without a job. The client reads from the operator's cache.
func newReports(c client.Client, clock clock.WithTicker, log logr.Logger) *reports {
	return &reports{
		client: c, clock: clock, log: log, unkept: rate.NewLimiter(reportsUnkept, burstUnkept),
		runs: map[progress.Key]*run{}, byJob: map[types.UID]progress.Key{}, wake: make(chan struct{}, 1),
	}
}

// handler returns the handler of informer events for Workloads.
func (r *reports) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { r.observe(object.(*kueue.Workload), true) },
		UpdateFunc: func(before, object any) {
			was, is := before.(*kueue.Workload), object.(*kueue.Workload)
			if was.UID != is.UID { // replaced by another while the watch was interrupted
				r.forget(was)
			}
			r.observe(is, false)
		},
		DeleteFunc: func(object any) {
			if gone, is := object.(cache.DeletedFinalStateUnknown); is {
				object = gone.Obj
			}
			r.forget(object.(*kueue.Workload))
		},
	}
}

// observe records a Workload. If it was not known before, its annotation is that of the run that it is in. The
// annotation of an earlier run is removed; that of a finished Workload misleads nobody, and stays.
func (r *reports) observe(w *kueue.Workload, unknown bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, written := keyOf(w), expectedEnd(w)
	switch known := r.runs[key]; {
	case workload.IsFinished(w):
		r.end(key)
		r.writes.Drop(key)
		return
	case !workload.IsAdmitted(w) || workload.IsEvicted(w):
		r.end(key)
	case known != nil && known.admitted.Equal(workload.TrueSince(w, kueue.WorkloadAdmitted)):
		if !r.writes.Waits(key) { // while another operator leads, it writes
			known.written = written
		}
		return
	default:
		r.end(key)
		begun := r.begin(key, w)
		if unknown {
			begun.written = written
			return
		}
	}
	if _, there := w.Annotations[muster.ExpectedEndAnnotation]; there {
		r.put(key, progress.Outlook{})
	} else {
		r.writes.Drop(key)
	}
}

// forget records that a Workload is gone.
func (r *reports) forget(w *kueue.Workload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(keyOf(w))
	r.writes.Drop(keyOf(w))
}

// begin begins a run. The caller holds r.mu.
func (r *reports) begin(key progress.Key, w *kueue.Workload) *run {
	begun := &run{admitted: workload.TrueSince(w, kueue.WorkloadAdmitted)}
	if owner := metav1.GetControllerOfNoCopy(w); owner != nil {
		begun.job = owner.UID
		r.byJob[owner.UID] = key
	}
	r.runs[key] = begun
	return begun
}

// end ends a run, if there is one. The caller holds r.mu.
func (r *reports) end(key progress.Key) {
	ended := r.runs[key]
	if ended == nil {
		return
	}
	delete(r.runs, key)
	if r.byJob[ended.job] == key {
		delete(r.byJob, ended.job)
	}
}

// put has what is known of the rest of a run written, or removed if that is nothing. The caller holds r.mu.
func (r *reports) put(key progress.Key, outlook progress.Outlook) {
	r.writes.Put(key, outlook)
	select {
	case r.wake <- struct{}{}:
	default: // it is awake
	}
}

// runOf returns the key of the run of the job with this UID in the namespace; false if the job has no Workload that
// runs.
func (r *reports) runOf(namespace string, job types.UID) (progress.Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, runs := r.byJob[job]
	if key.Namespace != namespace { // an owner reference may name the UID of any object
		return progress.Key{}, false
	}
	return key, runs
}

// admit returns errTooOften if the pod of this rank may not report now. It comes before the report is read.
func (r *reports) admit(of reporter) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	limiter := r.unkept
	if found := r.runs[of.run]; found != nil {
		limiter = found.limiterOf(of.rank)
	}
	if !limiter.AllowN(r.clock.Now(), 1) {
		return errTooOften
	}
	return nil
}

// limiterOf returns what bounds the reports of the pod of this rank. Only jobs that report have limiters.
func (r *run) limiterOf(rank progress.Rank) *rate.Limiter {
	if r.first == nil {
		r.first = rate.NewLimiter(reportsOfFirst, burstOfFirst)
		r.others = rate.NewLimiter(reportsOfOthers, burstOfOthers)
	}
	if lowest, any := r.LastHeard(); any && rank.Compare(lowest) <= 0 {
		return r.first
	}
	return r.others
}

// take records a valid report. Nothing is kept of it if another pod of the job is heard, or if the job does not run.
func (r *reports) take(of reporter, status *progress.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, found := r.clock.Now(), r.runs[of.run]
	if found == nil || !found.Take(of.rank, status, now) {
		return
	}
	outlook := found.Outlook()
	switch {
	case outlook.End.IsZero():
	case progress.Moved(found.written, outlook.End, now):
		r.put(of.run, outlook)
	case !found.written.IsZero(): // it has moved back
		r.writes.Drop(of.run)
	}
}

// keyOf returns the key of a Workload.
func keyOf(w *kueue.Workload) progress.Key {
	return progress.Key{Namespace: w.Namespace, Name: w.Name, UID: string(w.UID)}
}

// expectedEnd returns the expected end that is written in the Workload, zero if there is none that can be read.
func expectedEnd(w *kueue.Workload) time.Time {
	end, _ := time.Parse(time.RFC3339, w.Annotations[muster.ExpectedEndAnnotation])
	return end
}
