package rendezvous

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// countedClient counts the reads of a client.
func countedClient(t *testing.T, reads *atomic.Int64, objects ...client.Object) client.Client {
	return interceptor.NewClient(clientOf(t, objects...).(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			options ...client.GetOption) error {
			reads.Add(1)
			return c.Get(ctx, key, object, options...)
		},
	})
}

// inJobSet returns a pod of the JobSet js, whose UID is its name.
func inJobSet(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
		OwnerReferences: controlledBy("batch/v1", "Job", "js-a-0", "a"),
		Labels: map[string]string{jobset.JobSetNameKey: "js", jobset.JobIndexKey: "0",
			jobset.ReplicatedJobNameKey: "a", "batch.kubernetes.io/job-completion-index": "0"}}}
}

func callerOf(pod *corev1.Pod) caller {
	return caller{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}
}

// TestPodHoldsOneRequest: anyone who may create a pod can send requests in its name, and each one that is held costs
// memory, and work at events.
func TestPodHoldsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests = 2000
		var reads, replaced atomic.Int64
		pod, other := inJobSet("p"), inJobSet("q") // their Job has not been observed
		s := &server{registry: newRegistry(countedClient(t, &reads, pod, other))}
		for range requests {
			go func() {
				if _, err := s.longPoll(t.Context(), callerOf(pod),
					protocol.Request{State: protocol.Waiting}); errors.Is(err, errReplaced) {
					replaced.Add(1)
				}
			}()
		}
		synctest.Wait()
		if held := len(s.registry.holds.byPod); held != 1 || replaced.Load() != requests-1 {
			t.Errorf("%d requests are held and %d were replaced, want 1 and all others", held, replaced.Load())
		}
		reads.Store(0)
		s.registry.handler().OnAdd(other, false)
		synctest.Wait()
		if got := reads.Load(); got != 0 {
			t.Errorf("an event of another pod made %d reads, want none", got)
		}
		s.registry.handler().OnUpdate(pod, pod)
		synctest.Wait()
		if got := reads.Load(); got < 1 || got > 4 {
			t.Errorf("an event of the pod made %d reads, want a few", got)
		}
		time.Sleep(protocol.Hold)
		synctest.Wait()
		if left := len(s.registry.holds.byPod) + len(s.registry.holds.awaiting); left > 0 {
			t.Errorf("%d entries are kept after the requests have ended", left)
		}
	})
}

// TestHeldRequestsAreBounded: a pod whose request is held already may replace it.
func TestHeldRequestsAreBounded(t *testing.T) {
	holds := newHolds(2)
	for _, step := range []struct {
		pod  types.UID
		want error
	}{{"a", nil}, {"b", nil}, {"c", errFull}, {"a", nil}, {"c", errFull}} {
		if _, err := holds.begin(step.pod); !errors.Is(err, step.want) {
			t.Errorf("holding a request of pod %s: error %v, want %v", step.pod, err, step.want)
		}
	}
	holds.end(holds.byPod["b"])
	if _, err := holds.begin("c"); err != nil {
		t.Errorf("holding a request after another one ended: %v", err)
	}
}

// TestPodOfNoJobIsAnsweredAtOnce: such a request would be held in vain.
func TestPodOfNoJobIsAnsweredAtOnce(t *testing.T) {
	plain := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "plain", UID: "plain"}}
	uncontrolled := inJobSet("uncontrolled")
	uncontrolled.OwnerReferences = nil
	for _, pod := range []*corev1.Pod{plain, uncontrolled} {
		synctest.Test(t, func(t *testing.T) {
			s, began := &server{registry: newRegistry(clientOf(t, pod))}, time.Now()
			got, err := s.longPoll(t.Context(), callerOf(pod), protocol.Request{State: protocol.Waiting})
			if err != nil || got.Refused == "" {
				t.Errorf("%s: answer to a waiting agent = %+v, %v, want a refusal", pod.Name, got, err)
			}
			got, err = s.longPoll(t.Context(), callerOf(pod), protocol.Request{State: protocol.Running})
			if err != nil || !strings.HasPrefix(got.Over, "the pod is not of this job: ") {
				t.Errorf("%s: answer to a running agent = %+v, %v, want the end of its round", pod.Name, got, err)
			}
			if time.Since(began) > 0 {
				t.Errorf("%s: the answer took %s", pod.Name, time.Since(began))
			}
		})
	}
}

// TestPodThatAsksBeforeItIsObservedIsAnsweredLater: the events of its pod, Job and JobSet may arrive in any order after
// the request.
func TestPodThatAsksBeforeItIsObservedIsAnsweredLater(t *testing.T) {
	pod := inJobSet("p")
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js-a-0", UID: "a",
		OwnerReferences: controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "js", "js-uid")}}
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js", UID: "js-uid"}}
	for _, order := range [][]client.Object{{pod, job, js}, {pod, js, job}, {job, pod, js}, {job, js, pod}, {js, pod, job},
		{js, job, pod}} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{registry: newRegistry(clientOf(t))}
			answer := make(chan protocol.Response, 1)
			go func() {
				got, _ := s.longPoll(t.Context(), callerOf(pod), protocol.Request{State: protocol.Waiting})
				answer <- got
			}()
			for _, object := range order {
				synctest.Wait()
				if err := s.registry.client.Create(t.Context(), object.DeepCopyObject().(client.Object)); err != nil {
					t.Fatal(err)
				}
				s.registry.handler().OnAdd(object, false)
			}
			synctest.Wait()
			select {
			case got := <-answer:
				if !strings.Contains(got.Refused, "does not restart in place") {
					t.Errorf("answer = %+v, want that of the JobSet", got)
				}
			default:
				t.Error("there is no answer although all objects have been observed")
			}
			time.Sleep(protocol.Hold)
		})
	}
}
