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

// step is objects that may be made side by side, after those of the steps before.
type step []client.Object

// sample has the operator make all that one job is made of, and gives that, the job first.
func (b *bench) sample() []step {
	b.Helper()
	o := operator.Start(b.T, *operatorBinary, b.cluster)
	o.AwaitReady(b.T)
	b.asOperator = b.clientFor(operator.SignIn(b.T, b.cluster))
	namespace := b.namespace()
	job := jobOf(namespace, sampleName)
	b.create(job)
	b.untilPods(namespace, smallPods)
	steps := []step{{job}}
	for _, list := range []client.ObjectList{&corev1.ServiceAccountList{}, &volcano.JobList{}, &kueue.WorkloadList{}, &corev1.PodList{}} {
		if err := b.client.List(b.Context(), list, client.InNamespace(namespace)); err != nil {
			b.Fatal(err)
		}
		var of step
		for _, object := range itemsOf(list) {
			if metav1.GetControllerOf(object) != nil { // the ServiceAccount default is nobody's
				of = append(of, object.DeepCopyObject().(client.Object))
			}
		}
		steps = append(steps, of)
	}
	if got := fmt.Sprint(len(steps[1]), len(steps[2]), len(steps[3]), len(steps[4])); got != "1 1 1 4" {
		b.Fatalf("the sample has %s ServiceAccounts, VCJobs, Workloads and pods", got)
	}
	b.remove(namespace, &lattice.LatticeJob{})
	o.End(syscall.SIGTERM)
	return steps
}

// floor is what it takes to make the same objects for as many jobs, those that the operator makes as its user; and, admitted, to
// write what the sample's Workload was given to the status of each, which no creation can.
func (b *bench) floor(made []step, jobs int, admitted bool) (c cost) {
	b.Helper()
	namespace, own := b.namespace(), figure.Process(os.Getpid())
	b.awaitQuiet()
	server, client := b.server.CPU(b.T), own.CPU(b.T)
	c.time = b.timeToPods(namespace, jobs*smallPods, func() error {
		return sideBySide(jobs, func(i int) error { return b.copy(made, namespace, fmt.Sprintf("job-%d", i), admitted) })
	})
	c.server, c.client = b.server.CPU(b.T)-server, own.CPU(b.T)-client
	b.remove(namespace, &lattice.LatticeJob{})
	return c
}

// awaitQuiet waits until the control plane has next to nothing to do: what was there before is still being cleared away, and whoever
// comes next would pay for it.
func (b *bench) awaitQuiet() {
	b.Helper()
	const look, next = 2 * time.Second, 200 * time.Millisecond
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for before := b.server.CPU(b.T); ; {
		select {
		case <-ticker.C: // that nothing is under way can only be seen by waiting
		case <-b.Context().Done():
			b.Fatal(b.Context().Err())
		}
		used := b.server.CPU(b.T)
		if used-before < next {
			return
		}
		before = used
	}
}

// copy makes the objects of the sample as those of a job of the name, and has the Workload admitted if it is to be.
func (b *bench) copy(made []step, namespace, job string, admitted bool) error {
	owners := map[string]metav1.OwnerReference{}
	for _, of := range made {
		copies := make([]client.Object, len(of))
		var group errgroup.Group
		for i, object := range of {
			o := object.DeepCopyObject().(client.Object)
			o.SetName(nameOf(o, job))
			o.SetNamespace(namespace)
			o.SetUID("")
			o.SetResourceVersion("")
			o.SetManagedFields(nil)
			o.SetCreationTimestamp(metav1.Time{})
			o.SetFinalizers(nil) // nobody would take them away
			if owner := metav1.GetControllerOf(object); owner != nil {
				o.SetOwnerReferences([]metav1.OwnerReference{owners[owner.Kind]})
			}
			if pod, ok := o.(*corev1.Pod); ok && pod.Spec.ServiceAccountName != "" {
				pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = job+"-worker", ""
			}
			copies[i] = o
			by := b.asOperator
			if _, users := o.(*lattice.LatticeJob); users {
				by = b.client
			}
			group.Go(func() error { return by.Create(b.Context(), o) })
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
			given := o.DeepCopy()
			given.Status = of[0].(*kueue.Workload).Status
			if err := b.asOperator.Status().Patch(b.Context(), given, client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{})); err != nil {
				return err
			}
		}
	}
	return nil
}

// sideBySide does it for every job, as many at once as the operator would.
func sideBySide(jobs int, do func(int) error) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range jobs {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

func itemsOf(list client.ObjectList) []client.Object {
	var out []client.Object
	_ = meta.EachListItem(list, func(o runtime.Object) error { // it is a list
		out = append(out, o.(client.Object))
		return nil
	})
	return slices.Clip(out)
}

func lengthOf(list client.ObjectList) int { return len(itemsOf(list)) }
