package jobs

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
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

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

// Run carries out the plan of the job, as much of it as possible: a refused write holds back neither the other writes
// nor the status, which reports what was observed. Only creations are held back, once many of their kind were refused.
// The status is written after the writes unless the plan says otherwise. Events are recorded once the status is written,
// because the next plan, made from that status, does not repeat them.
func (ex *Executor) Run(ctx context.Context, job client.Object, p Plan) error {
	if p.StatusFirst {
		p.Status = withoutUnwritten(p.Status, slices.Concat(p.First, p.Writes))
		if err := ex.writeStatusAndEvents(ctx, job, p); err != nil {
			return err
		}
		return ex.writeInTurn(ctx, job, p)
	}
	err := ex.writeInTurn(ctx, job, p)
	p.Status = withoutUnwritten(p.Status, failed(err))
	if err != nil && p.StatusOnError != nil && !isConflict(err) && !isNamespaceTerminating(err) {
		status, event := p.StatusOnError(err)
		p.Status, p.Events = status, nil
		if !equality.Semantic.DeepEqual(job, status) {
			p.Events = []Event{event}
		}
	}
	return errors.Join(err, ex.writeStatusAndEvents(ctx, job, p))
}

// withoutUnwritten returns the status without what it says about these writes.
func withoutUnwritten(status client.Object, writes []Write) client.Object {
	for _, w := range writes {
		if status != nil && w.revert != nil {
			status = status.DeepCopyObject().(client.Object)
			w.revert(status)
		}
	}
	return status
}

func (ex *Executor) writeInTurn(ctx context.Context, job client.Object, p Plan) error {
	if err := ex.writeAll(ctx, job, p.First); err != nil {
		// Writes to the Workload are done all the same: a job that gets no pods must not keep its quota from others.
		heard := slices.DeleteFunc(slices.Clone(p.Writes), func(w Write) bool { return !w.isToWorkload() })
		return errors.Join(err, ex.writeAll(ctx, job, heard))
	}
	return ex.writeAll(ctx, job, p.Writes)
}

func (ex *Executor) writeStatusAndEvents(ctx context.Context, job client.Object, p Plan) error {
	if p.Status != nil && !equality.Semantic.DeepEqual(job, p.Status) {
		if err := ex.write(ctx, job, ChangeStatus(job, p.Status)); err != nil {
			return err
		}
	}
	for _, e := range p.Events {
		ex.record(job, e)
	}
	return nil
}

func (ex *Executor) writeAll(ctx context.Context, job client.Object, writes []Write) error {
	var creations creations
	return ForEach(writes, func(w Write) error {
		if w.verb == verbCreate {
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
	if gvk, lookup := apiutil.GVKForObject(w.object, ex.client.Scheme()); lookup == nil {
		kind = gvk.Kind
	}
	failed := &writeError{write: w, kind: kind, err: err}
	if reason := w.refusalReason(); reason != "" && IsRefused(err) && !isNamespaceTerminating(err) && !failed.isHeldBack() {
		ex.record(job, Warning(reason, err.Error()))
	}
	return failed
}

func (ex *Executor) attempt(ctx context.Context, job client.Object, w Write) error {
	switch w.verb {
	case verbCreate:
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
	case verbDelete:
		options := &client.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: ptr.To(w.object.GetUID())},
			PropagationPolicy: &w.propagation,
		}
		err := ex.client.Delete(ctx, w.object, options)
		if apierrors.IsConflict(err) {
			return nil // another object has this name now
		}
		return client.IgnoreNotFound(err)
	case verbApply:
		return ex.apply(ctx, job, w)
	case verbRemove:
		return ex.remove(ctx, job, w.object)
	case verbRemoveAll:
		return ex.removeAll(ctx, job, w)
	case verbChange:
		return ex.change(ctx, w)
	case verbChangeStatus:
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
		// A failed test and an invalid object give the same error: the other patch tells them apart.
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

// isUncached reports whether such objects are created and never read. To wait until one is in the cache would start an
// informer for all of them in the cluster, Secrets included, and require the right to read them.
func isUncached(object client.Object) bool {
	switch object.(type) {
	case *corev1.ConfigMap, *corev1.Secret, *corev1.ServiceAccount, *networkingv1.NetworkPolicy, *unstructured.Unstructured:
		return true
	}
	return false
}
