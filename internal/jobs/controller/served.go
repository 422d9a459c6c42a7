package controller

import (
	"context"
	"slices"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/controller/waiting"
	"github.com/musterhq/muster/internal/jobs/controller/watching"
	"github.com/musterhq/muster/internal/jobs/workloads"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
)

// Served is a job API of any type, as Serve returns it for AddTo.
type Served interface {
	kind() schema.GroupKind
	owned(podGroups bool) []client.Object
	controllerOf(object client.Object) []string
	podLabels(uid types.UID) client.MatchingLabels
	madeFor(object client.Object) types.UID
	queuesFor(ctx context.Context, c client.Reader, object client.Object) (bool, error)
	addTo(mgr ctrl.Manager, watches *watching.SharedWatches, x *write.Executor, settings Settings, owns []client.Object,
		apis []Served) error
}

// served is a job API with the methods that its controller needs.
type served[T client.Object] struct{ jobs.API[T] }

// Serve returns the API for AddTo.
func Serve[T client.Object](api jobs.API[T]) Served { return served[T]{api} }

// controllerOf returns the index key of the job that the object is a child of.
func (s served[T]) controllerOf(object client.Object) []string {
	owners := controllerUID(object)
	if uid := s.madeFor(object); len(owners) == 0 && uid != "" {
		return []string{string(uid)}
	}
	if len(owners) == 0 && s.Watch.Targets != nil {
		return s.targetKeys(object)
	}
	return owners
}

// madeFor returns the UID of the job that the operator has created the object for, "" if it is none of this API.
func (s served[T]) madeFor(object client.Object) types.UID {
	if s.Watch.MadeFor == nil {
		return ""
	}
	return s.Watch.MadeFor(object)
}

func (s served[T]) kind() schema.GroupKind { return s.Kind.GroupKind() }

func (s served[T]) podLabels(uid types.UID) client.MatchingLabels {
	return client.MatchingLabels{s.PodLabel: string(uid)}
}

// owned returns the kinds that Plan may create. PodGroups are among them wherever they are served, so that PodGroups
// left from an earlier start are loosened.
func (s served[T]) owned(podGroups bool) []client.Object {
	if !podGroups || !s.Abilities.Gangs {
		return s.Watch.Owns
	}
	return append(slices.Clone(s.Watch.Owns), &schedulingv1beta1.PodGroup{})
}

// asksAbout reports whether the definition is of a kind in Reads.Kinds.
func (s served[T]) asksAbout(definition client.Object) bool {
	return slices.ContainsFunc(s.Reads.Kinds,
		func(kind schema.GroupResource) bool { return kind.String() == definition.GetName() })
}

// needsReconcile reports whether the job has to be reconciled for an update of a child. One that gets another
// controller, or none, is no child any more: none of its later events, not even its deletion, reaches the job.
func (s served[T]) needsReconcile(e event.UpdateEvent) bool {
	return s.Watch.Matters == nil || controllerOf(e.ObjectOld) != controllerOf(e.ObjectNew) ||
		s.Watch.Matters(e.ObjectOld, e.ObjectNew)
}

// controllerOf returns the UID of what controls the object, "" if nothing does.
func controllerOf(object client.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}

// isUnexpected reports whether the job has to be reconciled for a new child.
func (s served[T]) isUnexpected(e event.CreateEvent) bool {
	return s.Watch.Expected == nil || !s.Watch.Expected(e.Object)
}

// Kinds returns the kinds of the APIs' jobs.
func Kinds(apis ...Served) (out []schema.GroupKind) {
	for _, api := range apis {
		out = append(out, api.kind())
	}
	return out
}

func controllerUID(object client.Object) []string {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// targetKeys returns the index keys of an object without a controller.
func (s served[T]) targetKeys(object client.Object) []string {
	switch name, uid := s.Watch.Targets(object); {
	case name == "" && uid == "":
		return nil
	case uid != "":
		return []string{string(uid), anyTargetKey(name)}
	default:
		return []string{targetKey(name), anyTargetKey(name)}
	}
}

// targets enqueues the job that an object without a controller is meant for.
func (s served[T]) targets() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		name, _ := s.Watch.Targets(object)
		if name == "" || metav1.GetControllerOf(object) != nil {
			return nil
		}
		return requestFor(object.GetNamespace(), name)
	})
}

// Settings are the same for all job APIs.
type Settings struct {
	// Backoff applies to jobs whose pods are refused.
	Backoff workloads.Backoff
	// NativeGangs makes pods belong to PodGroups; see probe.HasNativeGangs. Without it, PodGroups left from an earlier
	// start are loosened.
	NativeGangs bool
	// StrictServiceNames says that Services must have names that begin with a letter; see probe.HasStrictServiceNames.
	StrictServiceNames bool
	// Readiness says when it is reported on Workloads that their pods are ready.
	Readiness waiting.Readiness
	// Busy reports whether the API server is overloaded; nil means never.
	Busy func() bool
	// Agent returns what is needed to run commands of pods under muster-agent, as of now. Nil if no job wants it.
	Agent func() podspec.Agent
}

// controllerIndex finds the children of a job by its UID.
const controllerIndex = "metadata.controller.uid"

// targetKey returns the index key of objects that are meant for any job of this name. It cannot be mistaken for a UID.
func targetKey(job string) string { return "name/" + job }

// anyTargetKey returns the index key of all objects that are meant for a job of this name, be it any or a certain one.
func anyTargetKey(job string) string { return "any/" + job }

// definitionKind is the kind of custom resource definitions, of which only the metadata is watched.
var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
	Kind: "CustomResourceDefinition"}
