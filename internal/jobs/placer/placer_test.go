package placer

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
)

func TestEachGatedPodIsPatchedOnceWithItsPlace(t *testing.T) {
	own := pod("p1").rank(1)
	own.Spec.SchedulingGates = append(own.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: "mine"})
	own.Spec.NodeSelector = map[string]string{"pool": "f"}
	w := newWorld(t, admitted(on("a", 1), on("b", 1)), pod("p0").rank(0), own)
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.check("writes", []string{"place p0", "place p1"}, w.writes)
	w.check("places", map[string]string{"p0": "a", "p1": "b"}, w.nodes())
	var p1 corev1.Pod
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "p1"}, &p1); err != nil {
		t.Fatal(err)
	}
	w.check("other gates", []corev1.PodSchedulingGate{{Name: "mine"}}, p1.Spec.SchedulingGates)
	w.check("node selector", map[string]string{"pool": "f", corev1.LabelHostname: "b"}, p1.Spec.NodeSelector)
	if err := w.reconcile(); err != nil || len(w.writes) > 2 {
		t.Errorf("writes after another reconcile %v (error %v), want no more", w.writes, err)
	}
}

// TestANewOperatorAssignsTheRest, whichever write was the last one of the previous operator.
func TestANewOperatorAssignsTheRest(t *testing.T) {
	for last := range 4 {
		w := newWorld(t, admitted(on("a", 2), on("b", 1)), pod("x"), pod("y"), pod("z"))
		w.writesLeft = last
		if err := w.reconcile(); last < 3 && !errors.Is(err, errKilled) {
			t.Fatalf("after %d writes: error %v, want that of a killed operator", last, err)
		}
		w.writesLeft = 1000
		if err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, node := range w.nodes() {
			count[node]++
		}
		w.check("pods by node", map[string]int{"a": 2, "b": 1}, count)
		w.check("writes", []string{"place x", "place y", "place z"}, w.writes)
	}
}

func TestNothingIsWrittenForWorkloadsWithoutPlaces(t *testing.T) {
	evicted, waiting, finished, withoutPlaces := admitted(on("a", 1)), admitted(on("a", 1)), admitted(on("a", 1)),
		admitted(on("a", 1))
	evicted.Status.Conditions = append(evicted.Status.Conditions,
		metav1.Condition{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue})
	waiting.Status.Conditions, waiting.Status.Admission = nil, nil
	finished.Status.Conditions = append(finished.Status.Conditions,
		metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
	withoutPlaces.Status.Admission.PodSetAssignments[0].TopologyAssignment = nil
	for name, wl := range map[string]*kueue.Workload{"evicted": evicted, "waiting": waiting, "finished": finished,
		"without topology": withoutPlaces} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wl, pod("p0").rank(0), pod("p1").bound("b"))
			if err := w.reconcile(); err != nil || len(w.writes) > 0 {
				t.Errorf("writes %v (error %v), want none", w.writes, err)
			}
		})
	}
}

func TestAMisplacedPodIsMarkedAndDeletedWithItsGracePeriod(t *testing.T) {
	w := newWorld(t, admitted(on("a", 1), on("c", 1)), pod("p0").rank(0).at("a"), pod("p1").rank(1).at("b"))
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.check("writes", []string{"delete p1", "mark p1"}, w.writes)
	w.check("remaining pods", map[string]string{"p0": "a"}, w.nodes())

	tracked := pod("p1").rank(1).at("b")
	tracked.Finalizers = []string{batchv1.JobTrackingFinalizer}
	w = newWorld(t, admitted(on("a", 1)), tracked)
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	var left corev1.Pod
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(tracked.Pod), &left); err != nil {
		t.Fatal(err)
	}
	if c := left.Status.Conditions; len(c) != 1 || c[0].Type != corev1.DisruptionTarget ||
		c[0].Status != corev1.ConditionTrue || c[0].Reason != movedReason || c[0].LastTransitionTime.IsZero() {
		t.Errorf("conditions = %+v, want that of a disruption, which a podFailurePolicy can ignore", c)
	}
}

// TestPodsAreNotDeletedBeforeTheirJobIsSuspended: the template of their Job names other nodes than those it has now, so
// the Job is suspended and started again. A pod that was deleted before would count as a failure of the Job.
func TestPodsAreNotDeletedBeforeTheirJobIsSuspended(t *testing.T) {
	template := func(spec corev1.PodSpec) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: "job"},
			Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}
	}
	onA := corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelHostname: "a"}}
	suspended := template(corev1.PodSpec{})
	suspended.Spec.Suspend = ptr.To(true)
	another := template(corev1.PodSpec{})
	another.UID = "another"
	deleted := []string{"delete p0", "mark p0"}
	moved, partly := []podspec.Place{on("c", 1)}, []podspec.Place{on("b", 1), on("c", 1)}
	toAAndB, toAAndC := corev1.PodSpec{Affinity: toHosts("a", "b")}, corev1.PodSpec{Affinity: toHosts("a", "c")}
	for name, tc := range map[string]struct {
		job    *batchv1.Job
		kind   string
		places []podspec.Place
		writes []string
	}{
		"the template selects one node":     {template(onA), "batch/v1", moved, nil},
		"the template names nodes":          {template(toAAndB), "batch/v1", partly, nil},
		"the Job is suspended":              {suspended, "batch/v1", moved, nil},
		"the Job is gone":                   {nil, "batch/v1", moved, nil},
		"another Job has its name":          {another, "batch/v1", moved, nil},
		"the template leads to any node":    {template(corev1.PodSpec{}), "batch/v1", moved, deleted},
		"the template names all its places": {template(toAAndC), "batch/v1", moved, deleted},
		"it belongs to another kind of job": {template(onA), "batch.volcano.sh/v1alpha1", moved, deleted},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod("p0").rank(0).at("a")
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: tc.kind, Kind: "Job", Name: "job", UID: "job",
				Controller: ptr.To(true)}}
			w := newWorld(t, admitted(tc.places...), p)
			if tc.job != nil {
				if err := w.api.Create(t.Context(), tc.job); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			w.check("writes", tc.writes, w.writes)
		})
	}
}

// TestWhileAPodSetShrinksItsJobChoosesThePodsToDelete: there are fewer places than pods then, and the job could
// recreate pods that the placer deletes.
func TestWhileAPodSetShrinksItsJobChoosesThePodsToDelete(t *testing.T) {
	shrinking := admitted(on("a", 2), on("b", 1))
	shrinking.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](3)
	shrinking.Status.ResourceRequests = []kueue.PodSetRequest{{Name: "main"}}
	w := newWorld(t, shrinking, pod("p0").rank(0).at("a"), pod("p1").rank(1).at("a"), pod("p2").rank(2).at("b"),
		pod("p3").rank(3).at("b"), pod("p4").rank(4).at("c"))
	if err := w.reconcile(); err != nil || len(w.writes) > 0 {
		t.Errorf("writes %v (error %v), want none", w.writes, err)
	}
	done := shrinking.DeepCopy()
	done.Status.ResourceRequests = nil
	if !placesChanged().Update(event.UpdateEvent{ObjectOld: shrinking, ObjectNew: done}) {
		t.Error("the end of the shrink does not trigger a reconcile")
	}
}

// TestAStaleCacheDeletesNoPod: before a deletion, the Workload's places are read from the API server.
func TestAStaleCacheDeletesNoPod(t *testing.T) {
	w := newWorld(t, admitted(on("a", 1), on("c", 1)), pod("p1").rank(1).at("b"))
	current := newWorld(t, admitted(on("a", 1), on("b", 1)))
	w.placer.live = current.api
	if err := w.reconcile(); err != nil || len(w.writes) > 0 {
		t.Errorf("writes %v (error %v), want none", w.writes, err)
	}
}

// TestARecreatedNodeDeletesNoPod: while a node whose hostname is not its name is missing, its pods are known by the
// hostnames that they select.
func TestARecreatedNodeDeletesNoPod(t *testing.T) {
	filling := pod("filling").rank(1).bound("node-b")
	filling.Spec.Affinity = toHosts("b", "c")
	selecting := pod("selecting").rank(0).at("a")
	selecting.Spec.NodeName = "node-a"
	w := newWorld(t, admitted(on("a", 1), on("b", 1)), selecting, filling)
	if err := w.reconcile(); err != nil || len(w.writes) > 0 {
		t.Errorf("writes %v (error %v), want none", w.writes, err)
	}
	placed := pod("placed").rank(0).at("a")
	placed.Spec.NodeName = "node-a"
	w = newWorld(t, admitted(on("a", 1)), placed, pod("gated").rank(0))
	if err := w.reconcile(); err != nil || len(w.writes) > 0 {
		t.Errorf("the place of a pod that may run there was assigned: writes %v (error %v)", w.writes, err)
	}
	moved := pod("moved").rank(0).bound("b")
	moved.Spec.Affinity = toHosts("b", "c")
	w = newWorld(t, admitted(on("a", 1), on("c", 1)), moved)
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.check("writes for a pod whose place is elsewhere", []string{"delete moved", "mark moved"}, w.writes)
}

// toHosts returns the node affinity in the template of a Job that fills these hosts.
func toHosts(hosts ...string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: hosts}}}}}}}
}

// TestAPodOnADeletedNodeWithUnknownHostnameIsDeletedOnceItHasNoPlace: places name nodes by their hostnames, so the pod
// may be at any place whose node is not known.
func TestAPodOnADeletedNodeWithUnknownHostnameIsDeletedOnceItHasNoPlace(t *testing.T) {
	w := newWorld(t, admitted(on("a", 1), on("c", 1)), pod("p0").bound("ip-1"), pod("p1").bound("ip-2"))
	join := func(name, host string) {
		t.Helper()
		if err := w.api.Create(t.Context(),
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
				Labels: map[string]string{corev1.LabelHostname: host}}}); err != nil {
			t.Fatal(err)
		}
	}
	join("ip-1", "a")
	if err := w.reconcile(); err != nil || len(w.writes) > 0 {
		t.Fatalf("while the pod may be at the place on c: writes %v (error %v), want none", w.writes, err)
	}
	join("ip-3", "c")
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.check("writes", []string{"delete p1", "mark p1"}, w.writes)
}

// TestARecreatedPodIsReconciled: after a watch has restarted, two pods of the same name may appear as one update.
func TestARecreatedPodIsReconciled(t *testing.T) {
	before, after := pod("p").at("a").of("wl"), pod("p").at("b").of("wl")
	after.UID = "another"
	if !relevantPods().Update(event.UpdateEvent{ObjectOld: before.Pod, ObjectNew: after.Pod}) {
		t.Error("the update of a recreated pod is dropped")
	}
}

// TestPodsOnNodesThatUsersChoseAreIgnored: users may label the nodes of an exclusive JobSet themselves.
func TestPodsOnNodesThatUsersChoseAreIgnored(t *testing.T) {
	userPlaced := pod("p").rank(0).bound("elsewhere")
	userPlaced.Spec.NodeSelector = map[string]string{jobset.NamespacedJobKey: "ns_js-workers-0"}
	w := newWorld(t, admitted(on("a", 1)), userPlaced)
	for _, name := range []string{"a", "elsewhere"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		if err := w.api.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.reconcile(); err != nil || len(w.writes) > 0 {
		t.Errorf("writes %v (error %v), want none", w.writes, err)
	}
}

func TestTheWebhookAssignsThePlaceOfThePodsRankIfItIsFree(t *testing.T) {
	const removeGate = `{"op":"remove","path":"/spec/schedulingGates/0"}`
	for name, tc := range map[string]struct {
		pod  podBuilder
		want []string
	}{
		"rank with a free place": {pod("new").rank(1).of("wl"),
			[]string{`{"op":"add","path":"/spec/nodeSelector","value":{}}`,
				`{"op":"add","path":"/spec/nodeSelector/kubernetes.io~1hostname","value":"b"}`, removeGate}},
		"rank with a used place":       {pod("new").rank(0).of("wl"), nil},
		"no rank":                      {pod("new").of("wl"), nil},
		"no gate":                      {pod("new").rank(1).of("wl").at("b"), nil},
		"Workload that does not exist": {pod("new").rank(1).of("other"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, admitted(on("a", 1), on("b", 1)), pod("p0").rank(0).at("a").terminating())
			d := &podHandler{placer: w.placer, decoder: admission.NewDecoder(newScheme(t))}
			raw, err := json.Marshal(tc.pod.Pod)
			if err != nil {
				t.Fatal(err)
			}
			answer := d.Handle(t.Context(),
				admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Namespace: "ns",
					Object: runtime.RawExtension{Raw: raw}}})
			if !answer.Allowed {
				t.Fatalf("the pod was denied: %+v", answer.Result)
			}
			var got []string
			for _, patch := range answer.Patches {
				got = append(got, strings.TrimSpace(patch.Json()))
			}
			w.check("patches", tc.want, got)
		})
	}
}

// TestTheWebhookDeniesNoPod, neither if Workloads cannot be read nor if the request cannot be decoded.
func TestTheWebhookDeniesNoPod(t *testing.T) {
	scheme := newScheme(t)
	failing := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("unable to get: ns/w because of unknown namespace for the cache")
		}})
	d := &podHandler{placer: &placer{client: failing}, decoder: admission.NewDecoder(scheme)}
	for name, text := range map[string]string{
		"gated pod": `{"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {"kueue.x-k8s.io/workload": "w"}},
			"spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/topology"}]}}`,
		"invalid pod": `{"apiVersion": "v1", "kind": "Pod", "spec": 1}`,
	} {
		answer := d.Handle(t.Context(),
			admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Namespace: "ns",
				Object: runtime.RawExtension{Raw: []byte(text)}}})
		if !answer.Allowed || len(answer.Patches) > 0 {
			t.Errorf("%s: response %+v, want it allowed and unchanged", name, answer)
		}
	}
}
