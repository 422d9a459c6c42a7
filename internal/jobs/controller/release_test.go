package controller_test

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs/batchjob"
	"github.com/musterhq/muster/internal/jobs/controller"
)

// TestAFailedReleaseIsTriedAgain, though the Workload of another job that had the same name is gone meanwhile.
func TestAFailedReleaseIsTriedAgain(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.fate = running
	w.settle()
	gone := list[kueue.WorkloadList](w.world).Items[0]
	kept := gone.DeepCopy()
	kept.Name, kept.ResourceVersion, kept.UID = "kept", "", "of-a-later-job"
	w.put(kept)
	job := w.batchJob()
	for _, o := range []client.Object{job, &gone, kept} {
		if err := w.api.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	failing := interceptor.NewClient(w.recordingClient().(client.WithWatch), interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
			if o.GetName() == kept.Name {
				return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
			}
			return apierrors.NewNotFound(kueue.Resource("workloads"), o.GetName())
		},
	})
	_, err := controller.NewReconciler(batchjob.API, failing, w.events, w.clock).Reconcile(t.Context(),
		ctrl.Request{NamespacedName: client.ObjectKeyFromObject(job)})
	if err == nil {
		t.Error("Reconcile returned no error: nothing tries again to release the Workload, which keeps its quota")
	}
}
