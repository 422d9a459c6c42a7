package rendezvous

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/rendezvous/progress"
	"github.com/musterhq/muster/internal/workload"
)

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader takes reports.
func (r *reports) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it writes expected ends, one after the other, until the context ends.
func (r *reports) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		next, due, again := r.next()
		if due {
			if err := r.write(ctx, next); err != nil && ctx.Err() == nil {
				r.log.Error(err, "writing the expected end of a job", "workload", next.Key.Namespace+"/"+next.Key.Name)
			}
			continue
		}
		r.await(ctx, again)
	}
	return nil
}

// next takes the next write that is due. If there is none, it returns when to ask again, zero for not before a report.
func (r *reports) next() (next progress.Write, due bool, again time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes.Next(r.clock.Now())
}

// await returns at the time, if it is not zero, or when more is to be written, or when the context ends.
func (r *reports) await(ctx context.Context, at time.Time) {
	var timeout <-chan time.Time
	if !at.IsZero() {
		timer := r.clock.NewTimer(at.Sub(r.clock.Now()))
		defer timer.Stop()
		timeout = timer.C()
	}
	select {
	case <-timeout:
	case <-r.wake:
	case <-ctx.Done():
	}
}

// write writes when a job ends, and how much is done, into annotations of its Workload, or removes them. A write that
// fails is tried again, unless the Workload is gone.
func (r *reports) write(ctx context.Context, next progress.Write) error {
	err := patchOutlook(ctx, r.client, next)
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.runs[next.Key]
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // gone, or another one of its name
		return nil
	case err != nil && (found != nil || next.End.IsZero()):
		r.writes.Failed(next, r.clock.Now())
		return err
	case err != nil: // its run is over
		return nil
	case found != nil:
		found.written = next.End
	case !next.End.IsZero(): // it was stopped meanwhile
		r.put(next.Key, progress.Outlook{})
	}
	return nil
}

// patchOutlook makes the write.
func patchOutlook(ctx context.Context, c client.Client, next progress.Write) error {
	var end, done any
	if !next.End.IsZero() {
		end = next.End.UTC().Format(time.RFC3339)
		if !next.DoneAt.IsZero() {
			done = workload.FormatProgress(next.Percentage, next.DoneAt)
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         next.Key.UID, // guards against a new Workload with the same name
		"annotations": map[string]any{muster.ExpectedEndAnnotation: end, muster.ReportedProgressAnnotation: done},
	}})
	if err != nil {
		return err
	}
	target := &kueue.Workload{}
	target.Namespace, target.Name = next.Key.Namespace, next.Key.Name
	return c.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.DisableReadYourWritesConsistency)
}
