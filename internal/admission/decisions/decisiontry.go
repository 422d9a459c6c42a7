package decisions

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/refusal"
	"github.com/musterhq/muster/internal/workload"
)

// refusedAfter is how many writes to one version of a Workload the API server may answer with an internal error until
// that counts as a refusal. With the backoff between them it is some 20 seconds, longer than an API server or a webhook
// takes to restart.
const refusedAfter = 12

// failures are the writes to one version of a Workload that the API server answered with an internal error.
type failures struct {
	version string
	times   int
	last    error
}

// note counts one more.
func (f *failures) note(seen *kueue.Workload, err error) {
	if f.version != seen.ResourceVersion {
		*f = failures{version: seen.ResourceVersion}
	}
	f.times, f.last = f.times+1, err
}

// refusal returns the last error if that many writes to this version have failed, as read from the API server since the
// last one: none of them took effect, and the next one will not either. Meanwhile, what was decided on is used by
// nobody.
func (f *failures) refusal(seen *kueue.Workload) error {
	if f.version != seen.ResourceVersion || f.times < refusedAfter {
		return nil
	}
	return f.last
}

// result is the outcome of an attempt to write a decision.
type result int

const (
	// written: the API server has the change.
	written result = iota
	// alreadyThere: the Workload, as it was read, is as the decision wants it, without a write. If the cache says so, that
	// may be how it was before the decision: one that takes back what was written last, such as a resize.
	alreadyThere
	// superseded: the Workload is gone, or has changed so that the decision no longer applies.
	superseded
	// workloadFinished: the Workload has finished, which is final.
	workloadFinished
	// refused: the API server rejected the write, or fails at each attempt to make it.
	refused
	// unknown: the write may have taken effect; the Workload must be read again.
	unknown
)

// try reads the Workload and, if the decision still applies to it, writes the decision. version is the Workload's
// version after a successful write.
func (wr *Writer) try(ctx context.Context, reader client.Reader,
	open *openDecision) (_ result, version int64, _ error) {
	var seen kueue.Workload
	d := open.Decision
	if err := reader.Get(ctx, client.ObjectKey(d.Key), &seen, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return superseded, 0, nil
		}
		return unknown, 0, err
	}
	switch {
	case string(seen.UID) != d.UID:
		return superseded, 0, nil
	case workload.IsFinished(&seen):
		return workloadFinished, 0, nil
	}
	desired, outcome, err := wr.desired(ctx, &seen, d)
	switch {
	case err != nil:
		return unknown, 0, err
	case desired == nil:
		return outcome, translate.VersionOf(&seen), nil
	case mayHaveTakenEffect(open, &seen):
		return superseded, 0, nil
	}
	if err := open.failures.refusal(&seen); err != nil {
		return refused, 0, err
	}
	wr.Budget.noteWrite()
	began := wr.clock.Now()
	if d.Try != nil {
		_, err = WriteStatus(ctx, wr.client, &seen, desired, client.DryRunAll)
	} else {
		desired, version, err = WriteStatusThatFits(ctx, wr.client, &seen, desired)
	}
	wr.Budget.noteDuration(wr.clock.Since(began))
	switch {
	case err == nil && d.Try != nil:
		return written, 0, nil
	case d.Try != nil && apierrors.IsBadRequest(err):
		return refused, 0, err // a webhook that takes no dry run: nobody can know whether it would accept the admission
	case err == nil:
		wr.Events.StatusChanged(&seen, desired)
		LogChange(ctx, &seen, desired)
		if d.Evict != nil {
			countPreemption(d.Evict)
		}
		return written, version, nil
	case apierrors.IsNotFound(err):
		return superseded, 0, nil
	case refusal.Is(err):
		return refused, 0, err
	case refusal.IsInternal(err):
		open.failures.note(&seen, err)
	}
	if d.Try == nil && !apierrors.IsConflict(err) {
		open.uncertain = &seen
	}
	return unknown, 0, err
}
