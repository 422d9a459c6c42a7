package placer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

// webhookPath is the path of the webhook, which charts/muster/webhook/pod-places.yaml names.
const webhookPath = "/place-v1-pod"

// AddWebhook registers the webhook that assigns a pod with a rank to the place of that rank on creation,
// if the place is free. All other pods wait for the controller's patch.
func AddWebhook(mgr ctrl.Manager) {
	p := &placer{client: mgr.GetClient(), live: mgr.GetAPIReader(), clock: clock.RealClock{}}
	handler := &podHandler{placer: p, decoder: admission.NewDecoder(mgr.GetScheme())}
	mgr.GetWebhookServer().Register(webhookPath, &webhook.Admission{Handler: handler})
}

// podHandler is the admission handler for new pods.
type podHandler struct {
	placer  *placer
	decoder admission.Decoder
}

// Handle answers one admission request. It never denies a pod: a response with an error would, since
// failurePolicy Ignore applies only if there is no response.
func (d *podHandler) Handle(ctx context.Context, request admission.Request) admission.Response {
	var pod corev1.Pod
	if err := d.decoder.Decode(request, &pod); err != nil {
		return unplaced(ctx, err)
	}
	name := pod.Annotations[kueue.WorkloadAnnotation]
	if name == "" || !gated(&pod) {
		return admission.Allowed("")
	}
	place, ok, err := d.placer.placeOf(ctx, client.ObjectKey{Namespace: request.Namespace, Name: name}, &pod)
	switch {
	case err != nil:
		return unplaced(ctx, err)
	case !ok:
		return admission.Allowed("")
	}
	return admission.Patched("", placementPatch(&pod, place)...)
}

// unplaced admits a pod unchanged, so that the controller assigns its place.
func unplaced(ctx context.Context, err error) admission.Response {
	ctrl.LoggerFrom(ctx).Error(err, "creating a pod without its place: the controller will assign it")
	return admission.Allowed("")
}

// placeOf returns the place of the pod's rank, if it has a rank and the place is free.
func (p *placer) placeOf(ctx context.Context, key client.ObjectKey, pod *corev1.Pod) (podspec.Place, bool, error) {
	var w kueue.Workload
	if err := p.client.Get(ctx, key, &w); err != nil {
		return podspec.Place{}, false, client.IgnoreNotFound(err)
	}
	podSet := kueue.PodSetReference(pod.Labels[kueue.PodSetLabel])
	if !givesPlaces(&w) {
		return podspec.Place{}, false, nil
	}
	i := slices.IndexFunc(w.Status.Admission.PodSetAssignments, func(a kueue.PodSetAssignment) bool { return a.Name == podSet })
	if i < 0 {
		return podspec.Place{}, false, nil
	}
	places := jobs.PlacesOf(w.Status.Admission.PodSetAssignments[i].TopologyAssignment)
	if len(places) == 0 {
		return podspec.Place{}, false, nil
	}
	var list corev1.PodList
	if err := p.client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{workloadIndex: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return podspec.Place{}, false, fmt.Errorf("listing the pods of Workload %s: %w", key, err)
	}
	var others []*corev1.Pod
	for i := range list.Items {
		if list.Items[i].Labels[kueue.PodSetLabel] == string(podSet) {
			others = append(others, &list.Items[i])
		}
	}
	set := podSetOf(places, requestOf(&w, podSet), []*corev1.Pod{pod})
	place, ok := set.placeOfRank(pod, others, cachedNodes{ctx, p.client})
	return place, ok, nil
}

// placeOfRank returns the place of the pod's rank, if it has a rank and the place is free.
func (s podSet) placeOfRank(pod *corev1.Pod, others []*corev1.Pod, known nodes) (podspec.Place, bool) {
	g := s.groupOf(pod)
	if !s.hasRanks(g) {
		return podspec.Place{}, false
	}
	group := newGroupPlaces(s.places.Ranks(g.from, g.to), slices.DeleteFunc(slices.Clone(others), func(other *corev1.Pod) bool {
		return podspec.HasEnded(other) || s.groupOf(other) != g
	}), known)
	d := group.domainOfRank(pod, s.rankOf)
	if d == nil || !d.free() {
		return podspec.Place{}, false
	}
	return d.place, true
}

// placementPatch returns the operations that give a new pod its place.
func placementPatch(pod *corev1.Pod, place podspec.Place) []jsonpatch.Operation {
	var out []jsonpatch.Operation
	if len(pod.Spec.NodeSelector) == 0 {
		out = append(out, jsonpatch.NewOperation("add", "/spec/nodeSelector", map[string]any{}))
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, key := range slices.Sorted(maps.Keys(place.Domain)) {
		out = append(out, jsonpatch.NewOperation("add", "/spec/nodeSelector/"+escape.Replace(key), place.Domain[key]))
	}
	gate := slices.Index(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: kueue.TopologyGate})
	return append(out, jsonpatch.NewOperation("remove", fmt.Sprintf("/spec/schedulingGates/%d", gate), nil))
}
