package batchjob

import (
	"context"
	"fmt"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// webhookPath is the path of the webhook, which charts/muster/webhook/job-hold.yaml names.
const webhookPath = "/hold-batch-v1-job"

// AddWebhook registers a mutating webhook for the creation of Jobs that suspends and marks Jobs with a queue. It
// replaces the admission policies muster-job-hold where these are not served. Jobs that the operator, of this user
// name, creates are not held: it creates them for jobs that are queued for them.
func AddWebhook(mgr ctrl.Manager, operator string) {
	handler := &holder{cache: mgr.GetClient(), operator: operator, decoder: admission.NewDecoder(mgr.GetScheme())}
	mgr.GetWebhookServer().Register(webhookPath, &webhook.Admission{Handler: handler})
}

// holder suspends and marks Jobs with a queue.
type holder struct {
	cache    client.Reader
	operator string
	decoder  admission.Decoder
}

// Handle answers one admission request. It never denies a Job, not even on errors: an error response would deny it,
// since failurePolicy Ignore applies only if there is no response.
func (h *holder) Handle(ctx context.Context, request admission.Request) admission.Response {
	var job batchv1.Job
	if err := h.decoder.Decode(request, &job); err != nil {
		return admitUnheld(ctx, err)
	}
	if request.UserInfo.Username == h.operator || describe(&job, jobs.Facts{}).Foreign {
		return admission.Allowed("")
	}
	local, err := h.defaultQueue(ctx, request.Namespace)
	if err != nil { // no event reports when this would pass, for instance in a namespace that is not watched
		return admitUnheld(ctx, err)
	}
	if !jobs.IsQueued(&job, local) {
		return admission.Allowed("")
	}
	// A Job that is suspended already is marked all the same, or its users could start it before the operator has seen it.
	return admission.Patched("", jsonpatch.NewOperation("add", "/spec/suspend", true), markIn(&job))
}

// markIn returns the patch that marks the Job as one that queues for itself.
func markIn(job *batchv1.Job) jsonpatch.Operation {
	if len(job.Annotations) == 0 {
		return jsonpatch.NewOperation("add", "/metadata/annotations",
			map[string]string{muster.QueuedAnnotation: muster.QueuedItself})
	}
	return jsonpatch.NewOperation("add", "/metadata/annotations/"+strings.ReplaceAll(muster.QueuedAnnotation, "/", "~1"),
		muster.QueuedItself)
}

// admitUnheld admits a Job unchanged. If it should have been held, it is stopped once it is observed.
func admitUnheld(ctx context.Context, err error) admission.Response {
	ctrl.LoggerFrom(ctx).Error(err, "a Job is not held")
	return admission.Allowed("")
}

// defaultQueue returns the namespace's LocalQueue that takes in Jobs without a queue, nil if there is none.
func (h *holder) defaultQueue(ctx context.Context, namespace string) (*kueue.LocalQueue, error) {
	var local kueue.LocalQueue
	switch err := h.cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: muster.DefaultQueue}, &local); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the LocalQueue %s of %s: %w", muster.DefaultQueue, namespace, err)
	}
	return &local, nil
}
