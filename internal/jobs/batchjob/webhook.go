package batchjob

import (
	"context"
	"fmt"

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

// AddWebhook registers a mutating webhook for the creation of Jobs that suspends those with a queue. It replaces the
// admission policies muster-job-hold where these are not served. Jobs that a job of one of the APIs creates and is queued
// for are not held.
func AddWebhook(mgr ctrl.Manager, owners ...jobs.Served) {
	handler := &holder{cache: mgr.GetClient(), owners: owners, decoder: admission.NewDecoder(mgr.GetScheme())}
	mgr.GetWebhookServer().Register(webhookPath, &webhook.Admission{Handler: handler})
}

// holder suspends Jobs with a queue.
type holder struct {
	cache   client.Reader
	owners  []jobs.Served
	decoder admission.Decoder
}

// Handle answers one admission request. It never denies a Job, not even on errors: an error response would deny it,
// since failurePolicy Ignore applies only if there is no response.
func (h *holder) Handle(ctx context.Context, request admission.Request) admission.Response {
	var job batchv1.Job
	if err := h.decoder.Decode(request, &job); err != nil {
		return admitUnheld(ctx, err)
	}
	if suspended(&job) || describe(&job, jobs.Facts{}).Foreign {
		return admission.Allowed("")
	}
	local, err := h.defaultQueue(ctx, request.Namespace)
	if err != nil { // no event reports when this would pass, for instance in a namespace that is not watched
		return admitUnheld(ctx, err)
	}
	if !jobs.IsQueued(&job, local) {
		return admission.Allowed("")
	}
	job.Namespace = request.Namespace
	switch byOwner, err := jobs.QueuedByOwner(ctx, h.cache, &job, h.owners...); {
	case err != nil:
		return admitUnheld(ctx, err)
	case byOwner:
		return admission.Allowed("")
	}
	return admission.Patched("", jsonpatch.NewOperation("add", "/spec/suspend", true))
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
