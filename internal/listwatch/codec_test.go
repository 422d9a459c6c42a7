package listwatch

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

var workloads = kueue.GroupVersion.WithKind("Workload")

// decoderOf returns a decoder for the events of a kind: this package's, or client-go's.
func decoderOf(kind schema.GroupVersionKind, ours bool, stream io.Reader) watch.Decoder {
	scheme := testcluster.Scheme()
	var codecs runtime.NegotiatedSerializer = serializer.WithoutConversionCodecFactory{
		CodecFactory: serializer.NewCodecFactory(scheme)}
	if ours {
		skip := map[schema.GroupVersionKind]skipRule{vcJobs: skipAll, workloads: skipWaiting}[kind]
		codecs = codec{NegotiatedSerializer: codecs, scheme: scheme, kind: kind, skip: skip}
	}
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	frames := info.StreamSerializer.NewFrameReader(io.NopCloser(stream))
	return restwatch.NewDecoder(streaming.NewDecoder(frames, info.StreamSerializer.Serializer),
		codecs.DecoderToVersion(info.Serializer, kind.GroupVersion()))
}

// TestObjectsDecodeAsWithClientGo: randomly filled objects of each kind decode as with client-go.
func TestObjectsDecodeAsWithClientGo(t *testing.T) {
	scheme := testcluster.Scheme()
	for kind, of := range scheme.AllKnownTypes() {
		if _, object := reflect.New(of).Interface().(metav1.Object); !object || !strings.Contains(of.PkgPath(), "muster") {
			continue
		}
		t.Run(kind.String(), func(t *testing.T) {
			for seed := range int64(30) {
				fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), serializer.NewCodecFactory(scheme))
				object := reflect.New(of).Interface().(runtime.Object)
				fill.Fill(object)
				stream := event(t, watch.Modified, kind, object)
				_, ours, err := decoderOf(kind, true, bytes.NewReader(stream)).Decode()
				if err != nil {
					t.Fatalf("seed %d: %v in %s", seed, err, stream)
				}
				_, theirs, err := decoderOf(kind, false, bytes.NewReader(stream)).Decode()
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(ours, theirs) {
					t.Fatalf("seed %d: from %s\nours   %+v\ntheirs %+v", seed, stream, ours, theirs)
				}
			}
		})
	}
}

// event returns what an API server sends for an object: one line, with the fields of the object in order.
func event(t testing.TB, is watch.EventType, kind schema.GroupVersionKind, object runtime.Object) []byte {
	t.Helper()
	object.GetObjectKind().SetGroupVersionKind(kind)
	typed, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(typed, &fields); err != nil {
		t.Fatal(err)
	}
	served, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat([]byte(`{"type":"`), []byte(is), []byte(`","object":`), served, []byte("}\n"))
}

func TestStreamsDecodeAsWithClientGo(t *testing.T) {
	const named = `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"Workload","metadata":{"name":"a"}}`
	for what, stream := range map[string]string{
		"events one after the other": `{"type":"ADDED","object":` + named + "}\n" +
			`{"type":"DELETED","object":` + named + "}\n",
		"fields in another order": `{"object":{"metadata":{"name":"a"},"kind":"Workload","apiVersion":"kueue.x-k8s.io/v1beta1"},"type":"ADDED"}` + "\n",
		"an error":                `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}}` + "\n",
		"a bookmark":              `{"type":"BOOKMARK","object":{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"Workload","metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"7"}}}` + "\n",
		"longer than a buffer": `{"type":"ADDED","object":` + strings.Replace(named, `"a"`,
			`"`+strings.Repeat("a", 200_000)+`"`, 1) + "}\n" + `{"type":"ADDED","object":` + named + "}\n",
		"a text that looks like the end of an event": `{"type":"ADDED","object":` +
			strings.Replace(named, `"a"`, `"}\n\",\"object\":{"`, 1) + "}\n",
		"another kind":    `{"type":"ADDED","object":{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"Cohort","metadata":{"name":"a"}}}` + "\n",
		"an unknown type": `{"type":"SEEN","object":` + named + "}\n",
		"an unknown field": `{"type":"ADDED","object":` +
			strings.Replace(named, `{"name"`, `{"Name":"b","Wheels":4,"name"`, 1) + "}\n",
		"a field twice": `{"type":"ADDED","object":` +
			strings.Replace(named, `{"name"`, `{"name":"b","name"`, 1) + "}\n",
		"null": `{"type":"ADDED","object":` +
			strings.Replace(named, `{"name"`, `{"labels":null,"generation":null,"creationTimestamp":null,"name"`, 1) + "}\n",
		"a value of another type": `{"type":"ADDED","object":` + strings.Replace(named, `"a"`, `7`, 1) + "}\n",
		"invalid JSON":            `{"type":"ADDED","object":` + named + "]\n",
		"a truncated event":       `{"type":"ADDED","object":` + named + "}\n" + `{"type":"ADDED","obj`,
		"empty":                   "",
	} {
		t.Run(what, func(t *testing.T) {
			ours, theirs := decoderOf(workloads, true, strings.NewReader(stream)),
				decoderOf(workloads, false, strings.NewReader(stream))
			for n := 0; ; n++ {
				ourType, our, ourErr := ours.Decode()
				theirType, their, theirErr := theirs.Decode()
				if ourType != theirType || !reflect.DeepEqual(our, their) || (ourErr == nil) != (theirErr == nil) {
					t.Fatalf("event %d:\nours   %s %+v %v\ntheirs %s %+v %v", n, ourType, our, ourErr, theirType, their, theirErr)
				}
				if (ourErr == io.EOF) != (theirErr == io.EOF) {
					t.Fatalf("the stream ends with %v, for client-go with %v", ourErr, theirErr)
				}
				if ourErr != nil {
					return
				}
			}
		})
	}
}

// TestAnEventStaysValidAfterTheNext: a decoded object shares no memory with the buffers of the next event.
func TestAnEventStaysValidAfterTheNext(t *testing.T) {
	line := func(name string) string {
		return string(event(t, watch.Added, workloads,
			&kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"is": name}}}))
	}
	events := decoderOf(workloads, true, strings.NewReader(line("first")+line("other")))
	_, first, err := events.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := events.Decode(); err != nil {
		t.Fatal(err)
	}
	if is, _ := meta.Accessor(first); is.GetName() != "first" || is.GetLabels()["is"] != "first" {
		t.Errorf("the first event is %+v after the next was read", first)
	}
}

func FuzzEventsOfAnyBytes(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"Workload","metadata":{"name":"a"}}}` + "\n"))
	f.Add([]byte("\n{}\n"))
	f.Fuzz(func(_ *testing.T, stream []byte) {
		events := decoderOf(workloads, true, bytes.NewReader(stream))
		for {
			if _, _, err := events.Decode(); err != nil {
				return
			}
		}
	})
}

// BenchmarkEvent decodes an event of an admitted Workload, with this package and with client-go: such events are most
// of the cost of an operator's start.
func BenchmarkEvent(b *testing.B) {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "main", Image: "local",
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}}}
	line := event(b, watch.Modified, workloads, &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "job-a-4f2c1", UID: "b2b4f5e0-16b2-4d3e-9a0c-9f8f2a8f1c11",
			ResourceVersion: "123456", CreationTimestamp: metav1.Now(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "a",
				UID: "0c2f6a1e-6f3b-4a55-8f0e-5b7a52a0a3f7"}, jobset.GroupVersion.WithKind("JobSet"))}},
		Spec: kueue.WorkloadSpec{QueueName: "a", Priority: ptr.To[int32](50),
			PodSets: []kueue.PodSet{{Name: kueue.DefaultPodSetName, Count: 1, Template: template}}},
		Status: kueue.WorkloadStatus{
			Admission: &kueue.Admission{ClusterQueue: "a",
				PodSetAssignments: []kueue.PodSetAssignment{{Name: kueue.DefaultPodSetName, Count: ptr.To[int32](1)}}},
			Conditions: []metav1.Condition{
				{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue, Reason: "QuotaReserved",
					Message: "Quota reserved in ClusterQueue a", LastTransitionTime: metav1.Now()},
				{Type: kueue.WorkloadAdmitted, Status: metav1.ConditionTrue, Reason: "Admitted",
					Message: "The workload is admitted", LastTransitionTime: metav1.Now()}},
		}})
	for _, by := range []string{"listwatch", "client-go"} {
		b.Run(by, func(b *testing.B) {
			events := decoderOf(workloads, by == "listwatch", bytes.NewReader(bytes.Repeat(line, b.N)))
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if _, _, err := events.Decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
