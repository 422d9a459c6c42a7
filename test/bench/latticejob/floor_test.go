//go:build bench

package latticejob

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/test/bench/figure"
	"github.com/musterhq/muster/test/bench/operator"
)

const sampleName = "sample"

// step holds objects that may be created concurrently, after those of the steps before.
type step []client.Object

// sample runs one job with the operator, and returns the job and all its objects in order of creation, the job first.
func (b *bench) sample() []step {
	b.Helper()
	o := operator.Start(b.T, *operatorBinary, b.cluster)
	o.AwaitReady(b.T)
	b.asOperator = b.clientFor(operator.SignIn(b.T, b.cluster))
	namespace := b.makeNamespace()
	job := jobOf(namespace, sampleName)
	b.create(job)
	if err := b.untilPods(b.Context(), namespace, smallPods); err != nil {
		b.Fatal(err)
	}
	steps := []step{{job}}
	for _, list := range []client.ObjectList{&corev1.ServiceAccountList{}, &volcano.JobList{}, &kueue.WorkloadList{},
		&corev1.PodList{}} {
		if err := b.client.List(b.Context(), list, client.InNamespace(namespace)); err != nil {
			b.Fatal(err)
		}
		var next step
		for _, object := range itemsOf(list) {
			if metav1.GetControllerOf(object) != nil { // not the ServiceAccount "default"
				next = append(next, object.DeepCopyObject().(client.Object))
			}
		}
		steps = append(steps, next)
	}
	if got := fmt.Sprint(len(steps[1]), len(steps[2]), len(steps[3]), len(steps[4])); got != "1 1 1 4" {
		b.Fatalf("the sample has %s ServiceAccounts, VCJobs, Workloads and pods, want 1 1 1 4", got)
	}
	b.remove(namespace, &lattice.LatticeJob{})
	o.End(syscall.SIGTERM)
	return steps
}

// floor measures the creation of the sample's objects for a number of jobs, as the operator's user except for the jobs
// themselves. With admitted it also writes the status of the sample's Workload to each Workload, which a creation
// cannot set.
func (b *bench) floor(sample []step, jobs int, admitted bool) (c cost) {
	b.Helper()
	namespace, own := b.makeNamespace(), figure.Process(os.Getpid())
	b.awaitIdle()
	server, client := b.server.CPU(b.T), own.CPU(b.T)
	c.time = b.timeToPods(namespace, jobs*smallPods, func() error {
		return concurrently(jobs, func(i int) error { return b.copy(sample, namespace, fmt.Sprintf("job-%d", i), admitted) })
	})
	c.server, c.client = b.server.CPU(b.T)-server, own.CPU(b.T)-client
	b.remove(namespace, &lattice.LatticeJob{})
	return c
}

// awaitIdle waits until the control plane uses little CPU time: the removal of earlier objects would slow the next
// measurement down.
func (b *bench) awaitIdle() {
	b.Helper()
	const interval, idle = 2 * time.Second, 200 * time.Millisecond
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for before := b.server.CPU(b.T); ; {
		select {
		case <-ticker.C: // there is no event that reports idleness
		case <-b.Context().Done():
			b.Fatal(b.Context().Err())
		}
		used := b.server.CPU(b.T)
		if used-before < idle {
			return
		}
		before = used
	}
}

// copy creates the sample's objects for a job of the name, and its admission if admitted is true.
func (b *bench) copy(sample []step, namespace, job string, admitted bool) error {
	owners := map[string]metav1.OwnerReference{}
	for _, objects := range sample {
		copies := make([]client.Object, len(objects))
		var group errgroup.Group
		for i, object := range objects {
			o := object.DeepCopyObject().(client.Object)
			o.SetName(nameOf(o, job))
			o.SetNamespace(namespace)
			o.SetUID("")
			o.SetResourceVersion("")
			o.SetManagedFields(nil)
			o.SetCreationTimestamp(metav1.Time{})
			o.SetFinalizers(nil) // without the operator nothing would remove them
			if owner := metav1.GetControllerOf(object); owner != nil {
				o.SetOwnerReferences([]metav1.OwnerReference{owners[owner.Kind]})
			}
			if pod, ok := o.(*corev1.Pod); ok && pod.Spec.ServiceAccountName != "" {
				pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = job+"-worker", ""
			}
			copies[i] = o
			creator := b.asOperator
			if _, ok := o.(*lattice.LatticeJob); ok {
				creator = b.client
			}
			group.Go(func() error { return creator.Create(b.Context(), o) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		switch o := copies[0].(type) {
		case *lattice.LatticeJob:
			owners["LatticeJob"] = *metav1.NewControllerRef(o, lattice.GroupVersion.WithKind("LatticeJob"))
		case *volcano.Job:
			owners["Job"] = *metav1.NewControllerRef(o, volcano.GroupVersion.WithKind("Job"))
		case *kueue.Workload:
			if !admitted {
				break
			}
			after := o.DeepCopy()
			after.Status = objects[0].(*kueue.Workload).Status
			if err := b.asOperator.Status().Patch(b.Context(), after,
				client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{})); err != nil {
				return err
			}
		}
	}
	return nil
}

// concurrently calls do for the index of each job, with the operator's concurrency.
func concurrently(jobs int, do func(int) error) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range jobs {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

func itemsOf(list client.ObjectList) []client.Object {
	var out []client.Object
	_ = meta.EachListItem(list, func(o runtime.Object) error { // fails only if list is not a list
		out = append(out, o.(client.Object))
		return nil
	})
	return slices.Clip(out)
}

func lengthOf(list client.ObjectList) int { return len(itemsOf(list)) }
