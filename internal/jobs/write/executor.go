package write

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/refusal"
	"github.com/musterhq/muster/internal/workload"
)

// Executor is what carries out plans: it makes their writes and records their events. It is the only writer of jobs, of
// their children, and of what they report on their Workloads.
type Executor struct {
	client   client.Client
	recorder events.EventRecorder
}

// NewExecutor returns an Executor that writes with c and records events with recorder. The client must read its own
// writes (EnableReadYourWritesConsistency).
func NewExecutor(c client.Client, recorder events.EventRecorder) *Executor {
	return &Executor{client: c, recorder: recorder}
}

// Run does the batch of the job, as much as possible: a refused write holds back neither the rest of the writes nor the
// status, which reports what was observed. Only creations are held back, once many of their kind were refused. The
// status is written after the writes unless the batch says otherwise. Events are recorded once the status is written,
// because the next plan, made from that status, does not repeat them.
func (ex *Executor) Run(ctx context.Context, job client.Object, b Batch) error {
	if b.StatusFirst {
		b.Status = withoutUnwritten(b.Status, slices.Concat(b.First, b.Writes))
		if err := ex.writeStatusAndEvents(ctx, job, b); err != nil {
			return err
		}
		return ex.writeInTurn(ctx, job, b)
	}
	err := ex.writeInTurn(ctx, job, b)
	b.Status = withoutUnwritten(b.Status, failed(err))
	if err != nil && b.StatusOnError != nil && !IsConflict(err) && !IsNamespaceTerminating(err) {
		status, event := b.StatusOnError(err)
		b.Status, b.Events = status, nil
		if !equality.Semantic.DeepEqual(job, status) {
			b.Events = []Event{event}
		}
	}
	return errors.Join(err, ex.writeStatusAndEvents(ctx, job, b))
}

// withoutUnwritten returns the status without its record of these writes.
func withoutUnwritten(status client.Object, writes []Write) client.Object {
	for _, w := range writes {
		if status != nil && w.revert != nil {
			status = status.DeepCopyObject().(client.Object)
			w.revert(status)
		}
	}
	return status
}

func (ex *Executor) writeInTurn(ctx context.Context, job client.Object, b Batch) error {
	if err := ex.writeAll(ctx, job, b.First); err != nil {
		// Writes to the Workload are done all the same: a job that gets no pods must not keep its quota from others.
		toWorkload := slices.DeleteFunc(slices.Clone(b.Writes), func(w Write) bool { return !w.IsToWorkload() })
		return errors.Join(err, ex.writeAll(ctx, job, toWorkload))
	}
	return ex.writeAll(ctx, job, b.Writes)
}

func (ex *Executor) writeStatusAndEvents(ctx context.Context, job client.Object, b Batch) error {
	if b.Status != nil && !equality.Semantic.DeepEqual(job, b.Status) {
		if err := ex.write(ctx, job, ChangeStatus(job, b.Status)); err != nil {
			return err
		}
	}
	for _, e := range b.Events {
		ex.record(job, e)
	}
	return nil
}

func (ex *Executor) writeAll(ctx context.Context, job client.Object, writes []Write) error {
	var creations creations
	return ForEach(writes, func(w Write) error {
		if w.verb == VerbCreate {
			return ex.report(job, w, creations.try(w, func() error { return ex.attempt(ctx, job, w) }))
		}
		return ex.write(ctx, job, w)
	})
}

func (ex *Executor) write(ctx context.Context, job client.Object, w Write) error {
	return ex.report(job, w, ex.attempt(ctx, job, w))
}

// report records the events of a write, and returns its error with the write.
func (ex *Executor) report(job client.Object, w Write, err error) error {
	if err == nil {
		if w.onSuccess != nil {
			ex.record(job, *w.onSuccess)
		}
		return nil
	}
	kind := fmt.Sprintf("%T", w.object)
	if gvk, lookup := ex.client.GroupVersionKindFor(w.object); lookup == nil {
		kind = gvk.Kind
	}
	failed := &Failure{write: w, kind: kind, err: err}
	if reason := w.RefusalReason(); reason != "" && IsRefused(err) && !IsNamespaceTerminating(err) &&
		!failed.isHeldBack() {
		ex.record(job, Warning(reason, err.Error()))
	}
	return failed
}

func (ex *Executor) attempt(ctx context.Context, job client.Object, w Write) error {
	switch w.verb {
	case VerbCreate:
		object := w.object.DeepCopyObject().(client.Object)
		if w.fill != nil {
			if err := w.fill(object); err != nil {
				return err
			}
		}
		var options []client.CreateOption
		if isUncached(object) {
			options = append(options, client.DisableReadYourWritesConsistency)
		}
		if err := ex.client.Create(ctx, object, options...); !apierrors.IsAlreadyExists(err) {
			return err
		}
		_, err := ex.existing(ctx, job, w.object)
		return err
	case VerbDelete:
		options := &client.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: ptr.To(w.object.GetUID())},
			PropagationPolicy: &w.propagation,
		}
		err := ex.client.Delete(ctx, w.object, options)
		if apierrors.IsConflict(err) {
			return nil // another object has this name now
		}
		return client.IgnoreNotFound(err)
	case VerbApply:
		return ex.apply(ctx, job, w)
	case VerbRemove:
		return ex.remove(ctx, job, w.object)
	case VerbRemoveAll:
		return ex.removeAll(ctx, job, w)
	case VerbChange:
		return ex.change(ctx, w)
	case VerbChangeStatus:
		return ex.changeStatus(ctx, w)
	default:
		return fmt.Errorf("unknown verb %q", w.verb)
	}
}

// change patches everything but the status.
func (ex *Executor) change(ctx context.Context, w Write) error {
	if w.despiteStatus {
		err := ex.client.Patch(ctx, w.object.DeepCopyObject().(client.Object), diffDespiteStatus{base: w.base})
		if !apierrors.IsInvalid(err) {
			return err
		}
		// A failed test and an invalid object give the same error: the second patch tells them apart.
	}
	return ex.client.Patch(ctx, w.object.DeepCopyObject().(client.Object), diff(w.base))
}

// changeStatus patches the status. One that takes quota from a Workload is written in brief if it is too large: others
// wait for the quota.
func (ex *Executor) changeStatus(ctx context.Context, w Write) error {
	desired := w.object.DeepCopyObject().(client.Object)
	makePlain(desired)
	err := ex.client.Status().Patch(ctx, desired, diff(w.base))
	seen, is := w.base.(*kueue.Workload)
	if !is || !refusal.IsTooLarge(err) {
		return err
	}
	brief := workload.InBrief(seen, w.object.(*kueue.Workload))
	if brief == nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Error(err, "a Workload is too large for the status that takes its quota: it loses it without a reason in its status",
		"workload", client.ObjectKeyFromObject(seen).String())
	return ex.client.Status().Patch(ctx, brief, diff(seen))
}

// isUncached reports whether objects of this kind are created and never read. To wait until one is in the cache would
// start an informer for all objects of the kind in the cluster, Secrets included, and require the right to read them.
func isUncached(object client.Object) bool {
	switch object.(type) {
	case *corev1.ConfigMap, *corev1.Secret, *corev1.ServiceAccount, *networkingv1.NetworkPolicy,
		*unstructured.Unstructured:
		return true
	}
	return false
}
