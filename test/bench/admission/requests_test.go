//go:build bench

package admission

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/operator"
)

// requests makes the benchmark's own requests for the Workloads of a namespace. It sends bodies as they are, and
// decodes only the needed fields of watch events, so that the benchmark uses little of the CPU time that it measures.
type requests struct {
	api rest.Interface
	// asOperator is a client with the operator's user, for admissions.
	asOperator rest.Interface
	namespace  string
	// statusWrites counts the requests to write a Workload's status, failed ones included.
	statusWrites atomic.Int64
}

func newRequests(t *testing.T, cluster *testcluster.Cluster, namespace string) *requests {
	t.Helper()
	return &requests{api: apiOf(t, cluster.Config), asOperator: apiOf(t, operator.SignIn(t, cluster)),
		namespace: namespace}
}

func apiOf(t *testing.T, config *rest.Config) rest.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	version := kueue.GroupVersion
	config.GroupVersion, config.APIPath = &version, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(testcluster.Scheme()).WithoutConversion()
	api, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func (r *requests) create(ctx context.Context, body []byte) error {
	return r.api.Post().Namespace(r.namespace).Resource("workloads").Body(body).Do(ctx).Error()
}

// onlyMetadata is the Accept header of an admission: the operator asks for metadata only in the response.
const onlyMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// admit writes an admission without a decision: the same request as the operator's, by the same user.
func (r *requests) admit(ctx context.Context, w known, queue string, cpu int64) error {
	now := metav1.Now()
	condition := func(kind, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message,
			ObservedGeneration: 1, LastTransitionTime: now}
	}
	body := map[string]any{"status": map[string]any{
		"admission": kueue.Admission{
			ClusterQueue: kueue.ClusterQueueReference(queue),
			PodSetAssignments: []kueue.PodSetAssignment{{
				Name: kueue.DefaultPodSetName, Count: ptr.To[int32](1),
				Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{corev1.ResourceCPU: flavorName},
				ResourceUsage: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI)},
			}},
		},
		"conditions": []metav1.Condition{
			condition(kueue.WorkloadQuotaReserved, kueue.WorkloadQuotaReservedReason, "Quota reserved in ClusterQueue "+queue),
			condition(kueue.WorkloadAdmitted, kueue.WorkloadAdmittedReason, "The workload is admitted"),
		},
	}}
	if w.version != "" {
		body["metadata"] = map[string]string{"resourceVersion": w.version}
	}
	return r.patchStatus(ctx, r.asOperator.Patch(types.MergePatchType).SetHeader("Accept", onlyMetadata), w.name, body)
}

// finish marks a Workload Finished. It fails with a conflict if the Workload has changed since the known version.
func (r *requests) finish(ctx context.Context, w known) error {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	operations := []operation{{Op: "add", Path: "/status/conditions/-", Value: metav1.Condition{
		Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue, Reason: kueue.WorkloadFinishedReasonSucceeded,
		Message:            "It ran its time",
		LastTransitionTime: metav1.Now(),
	}}}
	if w.version != "" {
		operations = append(operations, operation{Op: "add", Path: "/metadata/resourceVersion", Value: w.version})
	}
	return r.patchStatus(ctx, r.api.Patch(types.JSONPatchType), w.name, operations)
}

func (r *requests) patchStatus(ctx context.Context, request *rest.Request, name string, patch any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding a patch of %s: %w", name, err)
	}
	r.statusWrites.Add(1)
	return request.Namespace(r.namespace).Resource("workloads").Name(name).SubResource("status").Body(body).Do(ctx).Error()
}

// known is the name of a Workload and its last seen resource version. An empty version stands for any.
type known struct{ name, version string }

// change is a watch event of a Workload.
type change struct {
	seen   time.Time
	err    error
	Type   string
	Object struct {
		Metadata struct{ Name, ResourceVersion string }
		Status   struct {
			Admission  *struct{}
			Conditions []struct{ Type, Status, Reason string }
		}
	}
}

func (c *change) known() known {
	return known{c.Object.Metadata.Name, c.Object.Metadata.ResourceVersion}
}

func (c *change) is(condition string) bool { return c.condition(condition, metav1.ConditionTrue) }

func (c *change) condition(kind string, status metav1.ConditionStatus) bool {
	for _, condition := range c.Object.Status.Conditions {
		if condition.Type == kind {
			return condition.Status == string(status)
		}
	}
	return false
}

// watch sends every change of the Workloads after the version until the context ends. If the watch fails, the last
// change has the error. The API server may end a watch that falls behind; watch then continues from the last seen
// version.
func (r *requests) watch(ctx context.Context, version string) <-chan change {
	changes := make(chan change, 1024)
	go func() {
		for {
			stream, err := r.api.Get().Namespace(r.namespace).Resource("workloads").
				Param("watch", "1").Param("resourceVersion", version).Stream(ctx)
			if err == nil {
				version, err = forward(ctx, stream, version, changes)
			}
			if ctx.Err() != nil {
				return
			}
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				changes <- change{err: err}
				return
			}
		}
	}()
	return changes
}

// forward sends the events of a stream until it ends, and returns the last version that it has seen.
func forward(ctx context.Context, stream io.ReadCloser, version string, changes chan<- change) (string, error) {
	defer stream.Close()
	decoder := json.NewDecoder(bufio.NewReaderSize(stream, 1<<20))
	for {
		var next change
		if err := decoder.Decode(&next); err != nil {
			return version, err
		}
		if next.Type == string(watch.Error) {
			return version, fmt.Errorf("the API server cannot resume the watch from version %s", version)
		}
		next.seen = time.Now()
		select {
		case changes <- next:
			version = next.Object.Metadata.ResourceVersion
		case <-ctx.Done():
			return version, ctx.Err()
		}
	}
}

// version returns the current resource version of the namespace's Workloads.
func (r *requests) version(t *testing.T) string {
	t.Helper()
	body, err := r.api.Get().Namespace(r.namespace).Resource("workloads").Param("limit", "1").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatal(err)
	}
	return list.Metadata.ResourceVersion
}

// clear deletes the Workloads of the namespace and returns when none is left. Deleting very many takes longer than the
// API server's request timeout of one minute, so it retries after a timeout.
func (r *requests) clear(t *testing.T) {
	t.Helper()
	for {
		err := r.api.Delete().Namespace(r.namespace).Resource("workloads").Do(t.Context()).Error()
		if err == nil {
			return
		}
		if !apierrors.IsTimeout(err) {
			t.Fatalf("deleting the Workloads: %v", err)
		}
	}
}

// cleanupContext returns a context for cleanup functions, which run after the test's own context was cancelled.
func cleanupContext(t *testing.T) context.Context { return context.WithoutCancel(t.Context()) }
