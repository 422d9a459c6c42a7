package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/refusal"
	"github.com/musterhq/muster/internal/workload"
)

const (
	// eventMessageBytes is the API's limit for the note of an event.
	eventMessageBytes = 1024
	// eventAction is the action of every event recorded here.
	eventAction = "Reconciling"
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

// remove deletes the object of this name if the job controls it. It reads the object from the API server: it was never
// observed, and may be another one's.
func (ex *Executor) remove(ctx context.Context, job, named client.Object) error {
	gvk, err := apiutil.GVKForObject(named, ex.client.Scheme())
	if err != nil {
		return err
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(gvk)
	switch err := ex.client.Get(ctx, client.ObjectKeyFromObject(named), found, client.DisableReadYourWritesConsistency); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return err
	}
	return ex.removeOwn(ctx, job, found)
}

// removeAll deletes the objects of the kind in the namespace that the job controls, except for those with the names.
func (ex *Executor) removeAll(ctx context.Context, job client.Object, w Write) error {
	gvk, err := apiutil.GVKForObject(w.object, ex.client.Scheme())
	if err != nil {
		return err
	}
	var found unstructured.UnstructuredList
	found.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	for {
		// Each page is from the API server: objects without a Go type are not cached.
		if err := ex.client.List(ctx, &found, client.InNamespace(w.object.GetNamespace()), client.Limit(pageSize), client.Continue(found.GetContinue())); err != nil {
			if meta.IsNoMatchError(err) {
				return nil
			}
			return err
		}
		for i := range found.Items {
			if slices.Contains(w.except, found.Items[i].GetName()) {
				continue
			}
			if err := ex.removeOwn(ctx, job, &found.Items[i]); err != nil {
				return err
			}
		}
		if found.GetContinue() == "" {
			return nil
		}
	}
}

// pageSize is how many objects of others are read at once to find those of a job. The namespace may have any number, and
// some may be large.
const pageSize = 100

// removeOwn deletes the object that was found, unless the job does not control it.
func (ex *Executor) removeOwn(ctx context.Context, job client.Object, found *unstructured.Unstructured) error {
	if !metav1.IsControlledBy(found, job) {
		return nil
	}
	err := ex.client.Delete(ctx, found, client.Preconditions{UID: ptr.To(found.GetUID())}, client.DisableReadYourWritesConsistency)
	if apierrors.IsConflict(err) {
		return nil // another object has this name now
	}
	return client.IgnoreNotFound(err)
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

// predecessorError says that the name is still taken by an object of an earlier job of the same name, which is garbage
// collected with that job. The error is temporary.
type predecessorError struct{ name string }

func (p *predecessorError) Error() string {
	return fmt.Sprintf("the name %s is taken by an object of an earlier job of the same name, which is being removed", p.name)
}

// nameTakenError says that an object of another owner has the name that a child of the job must have, or one that was
// made for something else, in the words of MadeForAnnotation.
type nameTakenError struct{ kind, name, madeFor string }

func (n *nameTakenError) Error() string {
	if n.madeFor != "" {
		return fmt.Sprintf("the name %s is taken by a %s that was made for %s: give the job, or what needs it, another name, or delete that %s", n.name, n.kind, n.madeFor, n.kind)
	}
	return fmt.Sprintf("the name %s is taken by an object that belongs to another owner: delete that %s, or give the job another name", n.name, n.kind)
}

// writeError says which write failed, and why.
type writeError struct {
	write Write
	kind  string
	err   error
}

func (w *writeError) Error() string {
	return fmt.Sprintf("%s %s %s: %v", w.write.verb, w.kind, client.ObjectKeyFromObject(w.write.object), w.err)
}

func (w *writeError) Unwrap() error { return w.err }

// failed returns the writes that failed according to the error of a Run.
func failed(err error) (out []Write) {
	for _, of := range failedWrites(err) {
		out = append(out, of.write)
	}
	return out
}

// failedWrites returns the errors of the single writes that were joined to the error of a Run.
func failedWrites(err error) (out []*writeError) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			out = append(out, failedWrites(e)...)
		}
		return out
	}
	var of *writeError
	if errors.As(err, &of) {
		out = append(out, of)
	}
	return out
}

// isConflict reports whether all errors of a Run are conflicts with other writers' changes, which the watch delivers.
// Conflicts of verbs other than change do not count: a create fails with one if it lost a race for a ResourceQuota, for
// example.
func isConflict(err error) bool {
	return everyError(err, func(err error) bool {
		var of *writeError
		return errors.As(err, &of) && (of.write.verb == verbChange || of.write.verb == verbChangeStatus) && apierrors.IsConflict(of.err)
	})
}

// isOvertaken reports whether all errors of a Run say that another writer was first: conflicts, as with isConflict, and
// objects that are gone.
func isOvertaken(err error) bool {
	return everyError(err, func(err error) bool { return isConflict(err) || apierrors.IsNotFound(err) })
}

// everyError reports whether this is so of every error that was joined to the error of a Run.
func everyError(err error, is func(error) bool) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !everyError(e, is) })
	}
	return is(err)
}

// isNamespaceTerminating reports whether something could not be created because its namespace is being terminated. The
// job goes with its namespace; nobody can do anything about it, and no event can be created there either.
func isNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// IsRefused reports whether users have to resolve the error. Other errors are temporary.
func IsRefused(err error) bool {
	var taken *nameTakenError
	var unlike *unlikeClaimError
	return errors.As(err, &taken) || errors.As(err, &unlike) || refusal.Is(err)
}

// record records an event. The recorder may drop it under load.
func (ex *Executor) record(job client.Object, e Event) { ex.emit(job, e, ex.recorder.Eventf) }

// budgetedRecorder is an event recorder that reports whether it recorded an event. An event that it had no capacity for
// is not counted as dropped, because it is tried again later.
type budgetedRecorder interface {
	TryEventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) bool
}

// recordStanding records a standing event, and reports whether the recorder had capacity for it. If not, the caller
// tries again later.
func (ex *Executor) recordStanding(job client.Object, e Event) (told bool) {
	r, ok := ex.recorder.(budgetedRecorder)
	if !ok {
		ex.record(job, e)
		return true
	}
	ex.emit(job, e, func(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
		told = r.TryEventf(regarding, related, eventtype, reason, action, note, args...)
	})
	return told
}

// emit passes an event on. Its message is never used as a format, has no control characters, and is cut to the
// API's limit.
func (ex *Executor) emit(job client.Object, e Event, to func(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)) {
	to(job, nil, cmp.Or(e.Type, corev1.EventTypeNormal), e.Reason, eventAction, "%s", workload.Cut(e.Message, eventMessageBytes))
}
