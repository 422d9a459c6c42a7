package install

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// servedPoll is the interval for polling discovery for an established API. Discovery cannot be watched, and follows
// within milliseconds.
const servedPoll = 20 * time.Millisecond

// servedWithin is how long AwaitServed waits. If an API is not served by then, the API server has a reason.
const servedWithin = 2 * time.Minute

// An API server that has just started refuses everybody until it has read the roles, and one takes a moment to learn of
// new ones. allowedPoll is how often AwaitServed asks again then, and allowedWithin for how long: if the operator has
// no rights by then, nobody gave it any.
const (
	allowedPoll   = 250 * time.Millisecond
	allowedWithin = 15 * time.Second
)

// AwaitServed returns when the cluster serves all of its definitions that are Muster's. An operator that is installed
// together with its chart would otherwise take kinds that the API server does not serve yet for missing, and run
// without them. It fails if one is not served in time, or cannot be.
func AwaitServed(ctx context.Context, config *rest.Config) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for custom resource definitions: %w", err)
	}
	ours, err := untilAllowed(ctx, func(ctx context.Context) (*apiextensionsv1.CustomResourceDefinitionList, error) {
		return client.ApiextensionsV1().CustomResourceDefinitions().List(ctx,
			metav1.ListOptions{LabelSelector: muster.ServedLabel + "=true"})
	})
	if err != nil {
		return fmt.Errorf("listing the definitions: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, servedWithin)
	defer cancel()
	for i := range ours.Items {
		if !ours.Items[i].DeletionTimestamp.IsZero() {
			continue // it is being deleted
		}
		if err := waitUntilOneIsServed(ctx, client, ours.Items[i].Name, &ours.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// untilAllowed asks until that is not forbidden any more, but no longer than allowedWithin.
func untilAllowed[T any](ctx context.Context, ask func(context.Context) (T, error)) (out T, err error) {
	var forbidden error
	waited := wait.PollUntilContextTimeout(ctx, allowedPoll, allowedWithin, true, func(ctx context.Context) (bool, error) {
		answer, err := ask(ctx)
		if !apierrors.IsForbidden(err) {
			out = answer
			return true, err
		}
		if forbidden == nil {
			log.Log.Info("the API server refuses the operator, which waits a moment for its roles", "within",
				allowedWithin.String(), "why", err.Error())
		}
		forbidden = err
		return false, nil
	})
	if forbidden != nil && wait.Interrupted(waited) && context.Cause(ctx) == nil {
		return out, fmt.Errorf("the operator has no rights; bind its roles to the user that it runs as: %w", forbidden)
	}
	return out, waited
}

// CheckInstalled returns an error that says what to do if the cluster does not serve Workloads, without which no
// operator can begin. It returns nil if that cannot be told.
func CheckInstalled(config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for discovery: %w", err)
	}
	if _, err := client.ServerResourcesForGroupVersion(kueue.GroupVersion.String()); apierrors.IsNotFound(err) {
		return fmt.Errorf("the cluster does not serve %s: install the definitions with Muster's chart, or start the operator with --install-apis",
			kueue.GroupVersion)
	}
	return nil
}

// waitUntilServed returns when the definitions are established and discovery lists their resources.
func waitUntilServed(ctx context.Context, client apiextensions.Interface,
	definitions []*unstructured.Unstructured) error {
	live, err := definitionStore(client).list(ctx)
	if err != nil {
		return fmt.Errorf("reading which definitions are established: %w", err)
	}
	for _, definition := range definitions {
		found, _ := live[identify(definition)].(*apiextensionsv1.CustomResourceDefinition)
		if err := waitUntilOneIsServed(ctx, client, definition.GetName(), found); err != nil {
			return err
		}
	}
	return nil
}

// waitUntilOneIsServed returns when one definition is established and discovery lists its resource. found is the
// definition as it was read last, nil if it did not exist.
func waitUntilOneIsServed(ctx context.Context, client apiextensions.Interface, name string,
	found *apiextensionsv1.CustomResourceDefinition) error {
	if done, err := isEstablished(found); err != nil {
		return fmt.Errorf("%s cannot be established: %w", name, err)
	} else if !done {
		if found, err = waitUntilEstablished(ctx, client, name); err != nil {
			return fmt.Errorf("waiting until %s is established: %w", name, err)
		}
	}
	if err := waitUntilDiscovered(ctx, client, found); err != nil {
		return fmt.Errorf("waiting until %s is served: %w", name, err)
	}
	return nil
}

func waitUntilEstablished(ctx context.Context, client apiextensions.Interface,
	name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	selector := fields.OneTermEqualSelector("metadata.name", name).String()
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return definitions.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return definitions.Watch(ctx, options)
		},
	}
	condition := func(event watch.Event) (bool, error) {
		definition, _ := event.Object.(*apiextensionsv1.CustomResourceDefinition)
		return isEstablished(definition)
	}
	event, err := watchtools.UntilWithSync(ctx, listWatch, &apiextensionsv1.CustomResourceDefinition{}, nil, condition)
	if err != nil {
		return nil, err
	}
	return event.Object.(*apiextensionsv1.CustomResourceDefinition), nil
}

// isEstablished fails if the API server does not accept the names: waiting would not help.
func isEstablished(definition *apiextensionsv1.CustomResourceDefinition) (bool, error) {
	if definition == nil {
		return false, nil
	}
	for _, condition := range definition.Status.Conditions {
		switch {
		case condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue:
			return true, nil
		case condition.Type == apiextensionsv1.NamesAccepted && condition.Status == apiextensionsv1.ConditionFalse:
			return false, fmt.Errorf("its names are refused: %s", condition.Message)
		}
	}
	return false, nil
}

func waitUntilDiscovered(ctx context.Context, client apiextensions.Interface,
	definition *apiextensionsv1.CustomResourceDefinition) error {
	for _, version := range definition.Spec.Versions {
		if !version.Served {
			continue
		}
		groupVersion := definition.Spec.Group + "/" + version.Name
		err := wait.PollUntilContextCancel(ctx, servedPoll, true, func(ctx context.Context) (bool, error) {
			resources, err := client.Discovery().ServerResourcesForGroupVersion(groupVersion)
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			for _, resource := range resources.APIResources {
				if resource.Name == definition.Spec.Names.Plural {
					return true, nil
				}
			}
			return false, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
