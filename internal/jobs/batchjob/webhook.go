package batchjob

import (
	"context"
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// webhookPath is where the API server asks; charts/muster/webhook/job-hold.yaml names it.
const webhookPath = "/hold-batch-v1-job"

// AddWebhook has the manager answer the API server when Jobs are made: those with a
// queue are suspended. It stands in for the policies muster-job-hold where those are
// not served. Jobs that a job of a served kind made are not held.
func AddWebhook(mgr ctrl.Manager, served ...schema.GroupKind) {
	handler := &holder{queues: mgr.GetClient(), served: served, decoder: admission.NewDecoder(mgr.GetScheme())}
	mgr.GetWebhookServer().Register(webhookPath, &webhook.Admission{Handler: handler})
}

// holder suspends Jobs with a queue.
type holder struct {
	queues  client.Reader
	served  []schema.GroupKind
	decoder admission.Decoder
}

// Handle answers one question of the API server. It never refuses a Job: an answer that tells of an error would, since who has an
// answer was not ignored.
func (h *holder) Handle(ctx context.Context, request admission.Request) admission.Response {
	var job batchv1.Job
	if err := h.decoder.Decode(request, &job); err != nil {
		return unheld(ctx, err)
	}
	if suspended(&job) || describe(&job, jobs.Facts{}).Foreign {
		return admission.Allowed("")
	}
	local, err := h.defaultQueue(ctx, request.Namespace)
	if err != nil { // a namespace whose jobs are not run here, say: nobody would let it go
		return unheld(ctx, err)
	}
	if !jobs.IsQueued(&job, local, h.served) {
		return admission.Allowed("")
	}
	return admission.Patched("", jsonpatch.NewOperation("add", "/spec/suspend", true))
}

// unheld lets a Job be made as it is. It is stopped when it is seen, if that is to be.
func unheld(ctx context.Context, err error) admission.Response {
	ctrl.LoggerFrom(ctx).Error(err, "a Job is not held")
	return admission.Allowed("")
}

// defaultQueue is the LocalQueue of the namespace that takes in who names none, nil if
// there is none.
func (h *holder) defaultQueue(ctx context.Context, namespace string) (*kueue.LocalQueue, error) {
	var local kueue.LocalQueue
	switch err := h.queues.Get(ctx, client.ObjectKey{Namespace: namespace, Name: muster.DefaultQueue}, &local); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the LocalQueue %s of %s: %w", muster.DefaultQueue, namespace, err)
	}
	return &local, nil
}
