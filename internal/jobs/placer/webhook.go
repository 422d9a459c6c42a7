package placer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
)

// webhookPath is the path of the webhook, which charts/muster/webhook/pod-places.yaml names.
const webhookPath = "/place-v1-pod"

// AddWebhook registers the webhook that assigns a pod with a rank to the place of that rank on creation, if the place
// is free. All other pods wait for the controller's patch.
func AddWebhook(mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, nodeIndex, nodesOf); err != nil {
		return fmt.Errorf("indexing Pods by %s: %w", nodeIndex, err)
	}
	p := &placer{client: mgr.GetClient(), live: mgr.GetAPIReader(), clock: clock.RealClock{}, ranked: newRankedSets()}
	handler := &podHandler{placer: p, decoder: admission.NewDecoder(mgr.GetScheme())}
	mgr.GetWebhookServer().Register(webhookPath, &webhook.Admission{Handler: handler})
	return nil
}

// podHandler is the admission handler for new pods.
type podHandler struct {
	placer  *placer
	decoder admission.Decoder
}

// Handle answers one admission request. It never denies a pod: a response with an error would, since failurePolicy
// Ignore applies only if there is no response.
func (p *podHandler) Handle(ctx context.Context, request admission.Request) admission.Response {
	var pod corev1.Pod
	if err := p.decoder.Decode(request, &pod); err != nil {
		return unplaced(ctx, err)
	}
	name := pod.Annotations[kueue.WorkloadAnnotation]
	if name == "" || !gated(&pod) {
		return admission.Allowed("")
	}
	place, ok, err := p.placer.placeOf(ctx, client.ObjectKey{Namespace: request.Namespace, Name: name}, &pod)
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

// placeOf returns the place of the pod's rank, if it has a rank and the place is free. It looks at no other places of
// the gang, and at no pods but the ones at that place.
func (p *placer) placeOf(ctx context.Context, key client.ObjectKey, pod *corev1.Pod) (podspec.Place, bool, error) {
	var w kueue.Workload
	if err := p.client.Get(ctx, key, &w, client.UnsafeDisableDeepCopy); err != nil {
		return podspec.Place{}, false, client.IgnoreNotFound(err)
	}
	if !givesPlaces(&w) {
		return podspec.Place{}, false, nil
	}
	name := kueue.PodSetReference(pod.Labels[kueue.PodSetLabel])
	ranked := p.ranked.of(&w, name)
	if ranked == nil {
		return podspec.Place{}, false, nil
	}
	set := podSetOf(ranked.places, requestOf(&w, name), []*corev1.Pod{pod})
	group := set.groupOf(pod)
	rank, ok := set.rankOf(pod)
	if !ok || !set.hasRanks(group) || rank >= group.to-group.from {
		return podspec.Place{}, false, nil
	}
	place := ranked.place(group.from + rank)
	known := cachedNodes{ctx, p.client}
	others, err := p.podsAt(ctx, key, place, known)
	if err != nil {
		return podspec.Place{}, false, err
	}
	free := ranked.size(place, group)
	for _, other := range others {
		if other.Labels[kueue.PodSetLabel] == string(name) && set.groupOf(other) == group {
			free--
		}
	}
	return place, free > 0, nil
}

// podsAt returns the pods of the Workload that are at the place, even if they are terminating.
func (p *placer) podsAt(ctx context.Context, workload client.ObjectKey, place podspec.Place,
	known cachedNodes) ([]*corev1.Pod, error) {
	// an assignment of another controller, wider than nodes
	fields := []client.MatchingFields{{workloadIndex: workload.Name}}
	if host := place.Node(); host != "" {
		names := sets.New(host)
		for _, node := range known.of(host) {
			names.Insert(node.Name)
		}
		fields = nil
		for name := range names {
			fields = append(fields, client.MatchingFields{nodeIndex: nodeKey(workload.Name, name)})
		}
	}
	found := map[types.UID]*corev1.Pod{}
	for _, field := range fields {
		var list corev1.PodList
		if err := p.client.List(ctx, &list, client.InNamespace(workload.Namespace), field,
			client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the pods of Workload %s on %s: %w", workload, place.Node(), err)
		}
		for pod := range pointers.To(list.Items) {
			if !podspec.HasEnded(pod) && !gated(pod) &&
				place.KeyOf(nodeLabelsOf(pod, known)) == place.Key() {
				found[pod.UID] = pod
			}
		}
	}
	return slices.Collect(maps.Values(found)), nil
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
