package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
)

// definitions is a manager of a cluster that has a definition of CronJobs, with another version than the operator's.
type definitions struct {
	ctrl.Manager
	asked int
}

func (d *definitions) GetScheme() *runtime.Scheme     { return clientgoscheme.Scheme }
func (d *definitions) GetCache() cache.Cache          { return definitionCache{} }
func (d *definitions) GetRESTMapper() meta.RESTMapper { return unserved{asked: &d.asked} }

type definitionCache struct{ cache.Cache }

func (definitionCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return definitionInformer{}, nil
}

type definitionInformer struct{ cache.Informer }

func (definitionInformer) AddEventHandler(
	h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	h.OnAdd(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "cronjobs.batch"}}, true)
	return nil, nil
}

// unserved counts the lookups.
type unserved struct {
	meta.RESTMapper
	asked *int
}

func (u unserved) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	*u.asked++
	return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
}

// TestAKindThatIsNeverServedIsSeldomAskedFor: its definition may have another version only.
func TestAKindThatIsNeverServedIsSeldomAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &definitions{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r := &router[*batchv1.Job]{}
		l := &optionalKind{OptionalKind: jobs.OptionalKind{Resource: schema.GroupResource{Group: "batch",
			Resource: "cronjobs"}, Object: &batchv1.CronJob{}}}
		missing := 0
		if err := r.awaitOptional(ctx, d, l, func() { missing++ }); err == nil || missing != 1 {
			t.Fatalf("awaiting the kind: %v, missing was called %d times; want an error and once", err, missing)
		}
		if d.asked > 100 {
			t.Errorf("the API server was asked %d times in an hour, want about once a minute", d.asked)
		}
	})
}
