package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/config/v1alpha1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	scheduling "github.com/musterhq/muster/api/volcano/scheduling/v1beta1"
	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/podproblem"
)

// ErrNotInstalled is returned if the cluster does not serve the queue API.
var ErrNotInstalled = errors.New("the cluster does not serve kueue.x-k8s.io/v1beta1")

// Scope selects how much of a cluster to read.
type Scope struct {
	// Namespace limits jobs and LocalQueues to one namespace; empty means all.
	Namespace string
	// ClusterQueues adds ClusterQueues, which are needed for quotas but not to list jobs.
	ClusterQueues bool
	// Limits adds ClusterQueues as far as the user may list them: they set time limits, without which the list of jobs
	// is useful too.
	Limits bool
}

// Cluster reads from one API server.
type Cluster struct {
	config *rest.Config
	scheme *runtime.Scheme
	client client.Client
	// configuration is the operator's configuration when the cluster was opened, or the default one; then assumed says
	// why.
	configuration *v1alpha1.Configuration
	assumed       string
}

// Open prepares to read from the API server of config. It reads the configuration that the operator published, which
// also names the API group of TrainingJobs. It does not fail if the server does not answer: the next read does.
func Open(ctx context.Context, config *rest.Config) (*Cluster, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kueue.AddToScheme, jobset.AddToScheme,
		lattice.AddToScheme, tensorstack.AddToScheme, volcano.AddToScheme, bus.AddToScheme, scheduling.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	reader, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	c := &Cluster{config: config, scheme: scheme, client: reader}
	c.configuration, c.assumed = readConfiguration(ctx, reader)
	if err := breezeml.AddToSchemeAs(*c.configuration.TrainingJob.Group)(scheme); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	return c, nil
}

// Snapshot reads the scope once.
func (c *Cluster) Snapshot(ctx context.Context, scope Scope) (*view.Snapshot, error) {
	snapshot, err := newSnapshot(ctx, c.read, scope)
	if err == nil {
		snapshot.Configuration, snapshot.Assumed = c.configuration, c.assumed
	}
	return snapshot, err
}

// readFunc fills the list of a kind, from the API server or from a cache, and returns the objects that cannot be
// decoded.
type readFunc func(context.Context, kindRead, ...client.ListOption) ([]view.Unreadable, error)

// newSnapshot reads a scope into a Snapshot. A kind that is not served is left empty, unless it is required for
// queueing: then newSnapshot returns ErrNotInstalled. A kind of jobs that the user may not list is left empty too, and
// noted in Unseen.
func newSnapshot(ctx context.Context, read readFunc, scope Scope) (*view.Snapshot, error) {
	var (
		lists         jobLists
		clusterQueues kueue.ClusterQueueList
		unreadable    []view.Unreadable
		unseen        []string
	)
	kinds := lists.kinds()
	kinds = append(kinds, scope.clusterQueueKinds(&clusterQueues)...)
	for _, kind := range kinds {
		var within []client.ListOption
		if kind.namespaced {
			within = append(within, client.InNamespace(scope.Namespace))
		}
		bad, err := read(ctx, kind, within...)
		unreadable = append(unreadable, bad...)
		switch {
		case err == nil:
		case apierrors.IsForbidden(err) && !kind.decides:
			unseen = append(unseen, kind.name)
		case !isNotServed(err):
			return nil, fmt.Errorf("list %s: %w", kind.name, err)
		case kind.needed:
			return nil, ErrNotInstalled
		}
	}
	snapshot := &view.Snapshot{ClusterQueues: clusterQueues.Items, Unreadable: unreadable, Unseen: unseen}
	lists.put(snapshot)
	return snapshot, nil
}

// Namespaces returns the names of all namespaces.
func (c *Cluster) Namespaces(ctx context.Context) ([]string, error) {
	var list corev1.NamespaceList
	if err := c.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// PodsOf lists the pods of a job. It omits pods older than the job: they belong to a deleted job of the same name.
func (c *Cluster) PodsOf(ctx context.Context, job *view.Job) ([]corev1.Pod, error) {
	label := job.PodLabel()
	if label == "" {
		return nil, nil
	}
	var pods corev1.PodList
	if err := c.client.List(ctx, &pods, client.InNamespace(job.Namespace),
		client.MatchingLabels{label: job.Name}); err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", job.FullTitle(), err)
	}
	return slices.DeleteFunc(pods.Items,
		func(pod corev1.Pod) bool { return pod.CreationTimestamp.Before(&job.CreatedAt) }), nil
}

// mostListed bounds how many pods of the jobs of one kind are read for a list.
const mostListed = 500

// PodsOfAll lists pods of the jobs, of which the namespace, "" for all, has all: one request for each kind of job, with
// some hundred pods at most. Pods that the user may not list are left out.
func (c *Cluster) PodsOfAll(ctx context.Context, namespace string, jobs []*view.Job) (out []corev1.Pod, err error) {
	names := map[string][]string{}
	for _, job := range jobs {
		if label := job.PodLabel(); label != "" && len(validation.IsValidLabelValue(job.Name)) == 0 {
			names[label] = append(names[label], job.Name)
		}
	}
	for _, label := range slices.Sorted(maps.Keys(names)) {
		of, err := labels.NewRequirement(label, selection.In, names[label])
		if err != nil {
			return nil, fmt.Errorf("select the pods of jobs: %w", err)
		}
		var pods corev1.PodList
		err = c.client.List(ctx, &pods, client.InNamespace(namespace),
			client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*of)}, client.Limit(mostListed))
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("list pods of jobs: %w", err)
		}
		out = append(out, pods.Items...)
	}
	return out, nil
}

// ClaimsOf reads which of the claims exist that pods without a node mount, at most so many: pods with a claim each have
// as many claims as pods.
func (c *Cluster) ClaimsOf(ctx context.Context, namespace string, pods []corev1.Pod,
	most int) (podproblem.Claims, error) {
	return podproblem.LookForClaims(pods, most, func(name string, into *metav1.PartialObjectMetadata) error {
		return c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	})
}

// MountsOf reads why volumes of the pods are not mounted, from the events of one pod for each set of volumes, and of a
// bounded number of pods. It says nothing if the user may not read events, and nothing of a ConfigMap that was made
// since: the kubelet soon tries again.
func (c *Cluster) MountsOf(
	ctx context.Context, namespace string, pods []corev1.Pod, most int, now time.Time,
) (found podproblem.Mounts, err error) {
	for _, pod := range podproblem.AwaitingMounts(pods, most) {
		var events corev1.EventList
		about := client.MatchingFields{"involvedObject.uid": string(pod.UID), "reason": podproblem.FailedMount}
		switch err := c.client.List(ctx, &events, client.InNamespace(namespace), about); {
		case apierrors.IsForbidden(err):
			return found, nil
		case err != nil:
			return found, fmt.Errorf("list the events of pod %s: %w", pod.Name, err)
		}
		found.Note(pod, events.Items, now)
		if name := found.MissingConfigMap(pod); name != "" {
			made := &metav1.PartialObjectMetadata{}
			made.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			if c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, made) == nil {
				found.Forget(pod)
			}
		}
	}
	return found, nil
}

// WarningsOf lists the Warning events of a job and of the objects that make its pods; none if the user may not read
// them.
func (c *Cluster) WarningsOf(ctx context.Context, job *view.Job) ([]corev1.Event, error) {
	warnings, err := c.warnings(ctx, job, "involvedObject.uid", job.UID)
	if err != nil || len(job.Makers) == 0 {
		return warnings, err
	}
	// A JobSet may have thousands of Jobs: they are not asked for one by one.
	others, err := c.warnings(ctx, job, "involvedObject.kind", "Job")
	return append(warnings, slices.DeleteFunc(others, func(event corev1.Event) bool {
		return !slices.Contains(job.Makers, event.InvolvedObject.UID)
	})...), err
}

// warnings lists the Warning events in the job's namespace whose field has the value.
func (c *Cluster) warnings(ctx context.Context, job *view.Job, field, value string) ([]corev1.Event, error) {
	var events corev1.EventList
	about := client.MatchingFields{field: value, "type": corev1.EventTypeWarning}
	if err := c.client.List(ctx, &events, client.InNamespace(job.Namespace), about); err != nil &&
		!apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("list the events of %s: %w", job.FullTitle(), err)
	}
	return events.Items, nil
}

// WarningsIn lists the Warning events of a namespace, "" for all; none if the user may not read them.
func (c *Cluster) WarningsIn(ctx context.Context, namespace string) ([]corev1.Event, error) {
	var events corev1.EventList
	of := client.MatchingFields{"type": corev1.EventTypeWarning}
	if err := c.client.List(ctx, &events, client.InNamespace(namespace), of); err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("list warning events: %w", err)
	}
	return events.Items, nil
}
