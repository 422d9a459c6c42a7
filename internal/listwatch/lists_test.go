package listwatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

func newWorkload() (runtime.Object, error) { return &kueue.Workload{}, nil }

var workloadLists = jsonLists{kind: workloads, newObject: newWorkload}

func newPod() (runtime.Object, error) { return &corev1.Pod{}, nil }

// all reads a list to its end.
func all(lists listReader, from io.Reader) (list metav1.ListMeta, objects []runtime.Object, err error) {
	list, err = lists.read(from, func(object runtime.Object) error {
		objects = append(objects, object)
		return nil
	})
	return list, objects, err
}

// filled returns a list of objects that are filled at random.
func filled[T any](t *testing.T, of *T) *T {
	t.Helper()
	fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), serializer.NewCodecFactory(testcluster.Scheme())).
		NumElements(3, 5).Fill(of)
	return of
}

// podsInProtobuf returns pods, and the list of them as API servers send it.
func podsInProtobuf(t *testing.T) ([]corev1.Pod, []byte) {
	t.Helper()
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: *filled(t, &[]corev1.Pod{})}
	scheme := testcluster.Scheme()
	codec := serializer.NewCodecFactory(scheme).EncoderForVersion(protobuf.NewSerializer(scheme, scheme),
		corev1.SchemeGroupVersion)
	var out bytes.Buffer
	if err := codec.Encode(list, &out); err != nil {
		t.Fatal(err)
	}
	return list.Items, out.Bytes()
}

func TestProtobufListsDecodeAsWithClientGo(t *testing.T) {
	_, sent := podsInProtobuf(t)
	list, got, err := all(protobufLists{newPod}, bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	theirs, _, err := serializer.NewCodecFactory(testcluster.Scheme()).UniversalDeserializer().Decode(sent, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := theirs.(*corev1.PodList)
	if list.ResourceVersion != "7" || len(got) != len(want.Items) || len(got) < 3 {
		t.Fatalf("got %d pods at version %s, want %d at version 7", len(got), list.ResourceVersion, len(want.Items))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], &want.Items[i]) {
			t.Errorf("pod %d differs from the sent one:\n%s", i, cmp.Diff(&want.Items[i], got[i]))
		}
	}
}

func TestJSONListsDecodeAsWithClientGo(t *testing.T) {
	want := kueue.WorkloadList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: *filled(t, &[]kueue.Workload{})}
	for i := range want.Items {
		want.Items[i].SetGroupVersionKind(workloads)
	}
	sent, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	list, got, err := all(workloadLists, bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(sent, &want); err != nil {
		t.Fatal(err)
	}
	if list.ResourceVersion != "7" || len(got) != len(want.Items) || len(got) < 3 {
		t.Fatalf("got %d Workloads at version %s, want %d at version 7", len(got), list.ResourceVersion, len(want.Items))
	}
	for i := range got {
		want.Items[i].TypeMeta = metav1.TypeMeta{} // as for objects of a watch
		if !reflect.DeepEqual(got[i], &want.Items[i]) {
			t.Errorf("Workload %d differs from the sent one:\n%s", i, cmp.Diff(&want.Items[i], got[i]))
		}
	}
}

func TestJSONLists(t *testing.T) {
	const one, other = `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"Workload","metadata":{"name":"a"}}`,
		`{"metadata":{"name":"b"}}`
	for what, c := range map[string]struct{ sent, names, version string }{
		"the order of an API server": {`{"apiVersion":"v","items":[` + one + `,` + other +
			`],"kind":"WorkloadList","metadata":{"resourceVersion":"7"}}` + "\n", "ab", "7"},
		"another order":  {`{"metadata":{"resourceVersion":"7"},"kind":"WorkloadList","items":[` + one + `]}`, "a", "7"},
		"no items":       {`{"items":[],"metadata":{"resourceVersion":"7"}}`, "", "7"},
		"null items":     {`{"items":null,"metadata":{"resourceVersion":"7"}}`, "", "7"},
		"unknown fields": {`{"more":{"items":[1]},"items":[` + other + `],"metadata":{"resourceVersion":"7"}}`, "b", "7"},
	} {
		list, objects, err := all(workloadLists, strings.NewReader(c.sent))
		names := ""
		for _, o := range objects {
			names += o.(*kueue.Workload).Name
		}
		if err != nil || names != c.names || list.ResourceVersion != c.version {
			t.Errorf("%s: got names %q, version %q, error %v", what, names, list.ResourceVersion, err)
		}
	}
	for what, sent := range map[string]string{
		"empty": "", "not an object": "[]", "items that are not a list": `{"items":{}}`,
		"an item that is not an object": `{"items":["a"]}`,
		"an item of another type":       `{"items":[{"metadata":{"name":7}}]}`,
		"a status":                      `{"kind":"Status","status":"Failure","metadata":[]}`,
	} {
		if _, objects, err := all(workloadLists, strings.NewReader(sent)); err == nil {
			t.Errorf("%s is read as %v, want an error", what, objects)
		}
	}
}

// TestATruncatedListIsAnError: a list is an error wherever it is cut off.
func TestATruncatedListIsAnError(t *testing.T) {
	_, pods := podsInProtobuf(t)
	whole := `{"items":[{"metadata":{"name":"a"}}],"metadata":{"resourceVersion":"7"}}`
	for at := range whole {
		if _, _, err := all(workloadLists, strings.NewReader(whole[:at])); err == nil {
			t.Errorf("%s is accepted as a list", whole[:at])
		}
	}
	const tail = 4 // the envelope ends with two empty fields, before which the list is complete
	for at := 0; at < len(pods)-tail; at += max(1, len(pods)/40) {
		if list, _, err := all(protobufLists{newPod}, bytes.NewReader(pods[:at])); err == nil && list.ResourceVersion != "" {
			t.Errorf("the first %d bytes of %d are accepted as a list", at, len(pods))
		}
	}
}

func TestNoBufferForAnObjectOfExcessiveSize(t *testing.T) {
	const list = "k8s\x00\x12\xff\xff\xff\xff\x07\x12\xf0\xff\xff\xff\x07"
	if _, _, err := all(protobufLists{newPod}, strings.NewReader(list)); err == nil ||
		!strings.Contains(err.Error(), "claims to have 2147483632 bytes") {
		t.Errorf("got error %v, want the claimed size refused", err)
	}
}

func TestAnErrorOfTheConsumerEndsTheList(t *testing.T) {
	_, pods := podsInProtobuf(t)
	enough := errors.New("enough")
	for what, read := range map[string]func(func(runtime.Object) error) error{
		"protobuf": func(take func(runtime.Object) error) error {
			_, err := protobufLists{newPod}.read(bytes.NewReader(pods), take)
			return err
		},
		"json": func(take func(runtime.Object) error) error {
			_, err := workloadLists.read(strings.NewReader(`{"items":[{},{}]}`), take)
			return err
		},
	} {
		passed := 0
		if err := read(func(runtime.Object) error { passed++; return enough }); !errors.Is(err, enough) || passed != 1 {
			t.Errorf("%s: %d objects were passed on, error %v, want one and the consumer's error", what, passed, err)
		}
	}
}

func FuzzListsOfAnyBytes(f *testing.F) {
	f.Add([]byte(`{"items":[{"metadata":{"name":"a"}}],"metadata":{"resourceVersion":"7"}}`))
	f.Add([]byte("k8s\x00\x0a\x00\x12\x04\x0a\x00\x12\x00\x1a\x00\x22\x00"))
	f.Add([]byte("k8s\x00\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x12\xff\xff\xff\xff\x07"))
	f.Fuzz(func(_ *testing.T, sent []byte) {
		_, _, _ = all(workloadLists, bytes.NewReader(sent))
		_, _, _ = all(protobufLists{newPod}, bytes.NewReader(sent))
	})
}
