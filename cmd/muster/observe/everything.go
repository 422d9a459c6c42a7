package observe

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/cmd/muster/view"
)

// SeeEverything reads all that decisions depend on, with the rights of the user: what he
// may not list in all namespaces is read in the one, and noted in Unseen with what he may
// not list at all.
func (c *Cluster) SeeEverything(ctx context.Context, namespace string) (*view.Seen, error) {
	var (
		workloads      kueue.WorkloadList
		localQueues    kueue.LocalQueueList
		clusterQueues  kueue.ClusterQueueList
		cohorts        kueue.CohortList
		flavors        kueue.ResourceFlavorList
		checks         kueue.AdmissionCheckList
		namespaces     corev1.NamespaceList
		limitRanges    corev1.LimitRangeList
		runtimeClasses nodev1.RuntimeClassList
		jobSets        jobset.JobSetList
		genericJobs    tensorstack.GenericJobList
		jobs           batchv1.JobList
	)
	seen := &view.Seen{}
	for _, kind := range []struct {
		name       string
		list       client.ObjectList
		namespaced bool
		// decides tells that all of them count, needed that nothing works without any.
		decides, needed bool
	}{
		{"workloads", &workloads, true, true, true},
		{"localqueues", &localQueues, true, true, true},
		{"clusterqueues", &clusterQueues, false, true, false},
		{"cohorts", &cohorts, false, true, false},
		{"resourceflavors", &flavors, false, true, false},
		{"admissionchecks", &checks, false, true, false},
		{"namespaces", &namespaces, false, true, false},
		{"limitranges", &limitRanges, true, false, false}, // those of the namespace are enough
		{"runtimeclasses", &runtimeClasses, false, true, false},
		{"jobsets", &jobSets, true, false, false},
		{"genericjobs", &genericJobs, true, false, false},
		{"jobs", &jobs, true, false, false},
	} {
		whole, err := c.list(ctx, kind.list, kind.namespaced, namespace)
		switch {
		case kind.needed && errors.Is(err, errNotServed):
			return nil, ErrNotInstalled
		case errors.Is(err, errNotServed), apierrors.IsForbidden(err) && !kind.needed:
		case err != nil:
			return nil, fmt.Errorf("list %s: %w", kind.name, err)
		}
		if apierrors.IsForbidden(err) || !whole && kind.decides {
			seen.Unseen = append(seen.Unseen, kind.name)
		}
	}
	seen.Workloads, seen.LocalQueues, seen.ClusterQueues = workloads.Items, localQueues.Items, clusterQueues.Items
	seen.Cohorts, seen.ResourceFlavors, seen.AdmissionChecks = cohorts.Items, flavors.Items, checks.Items
	seen.Namespaces, seen.LimitRanges, seen.RuntimeClasses = namespaces.Items, limitRanges.Items, runtimeClasses.Items
	seen.JobSets, seen.GenericJobs, seen.Jobs = jobSets.Items, genericJobs.Items, jobs.Items
	return seen, nil
}

// errNotServed says that the cluster does not know a kind.
var errNotServed = errors.New("the kind is not served")

// list reads all objects of a kind, or those of the namespace where the user may not read
// more. It reports whether these are all that count.
func (c *Cluster) list(ctx context.Context, into client.ObjectList, namespaced bool, namespace string) (whole bool, err error) {
	err = c.client.List(ctx, into)
	switch {
	case meta.IsNoMatchError(err) || err != nil && isNotServed(err):
		return true, errNotServed // there are none
	case apierrors.IsForbidden(err) && namespaced:
		return false, c.client.List(ctx, into, client.InNamespace(namespace))
	}
	return err == nil, err
}
