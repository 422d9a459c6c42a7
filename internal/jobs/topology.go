package jobs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
)

// Ranks says by which labels the pods of a pod set are ordered.
type Ranks struct {
	// IndexLabel is the pod label that holds a pod's index, "" if there is none.
	IndexLabel string
	// GroupLabel is the pod label that holds the index of a pod's group, "" if there is only one group. Groups is the
	// number of groups, all of equal size.
	GroupLabel string
	Groups     int32
}

// topologyAnnotations are the annotations that RequestTopology reads.
var topologyAnnotations = []string{
	kueue.PodSetRequiredTopologyAnnotation, kueue.PodSetPreferredTopologyAnnotation,
	kueue.PodSetUnconstrainedTopologyAnnotation, kueue.PodSetSliceRequiredTopologyAnnotation,
	kueue.PodSetSliceSizeAnnotation, kueue.PodSetSliceRequiredTopologyConstraintsAnnotation,
	kueue.PodSetGroupNameAnnotation,
}

// RequestTopology sets the topology requests of the pod sets from the annotations of their templates. It returns what
// is wrong with these, nil if nothing is. A pod set without topology annotations is left unchanged. ranks is called
// with the index of each pod set that has some; it is nil if pods have no ranks.
func RequestTopology(podSets []kueue.PodSet, ranks func(i int) Ranks) *write.Event {
	for i := range podSets {
		podSet := &podSets[i]
		request, problem := TopologyOf(podSet.Template.Annotations, podSet.Count)
		if problem != "" {
			return BadTopology(podSet, problem)
		}
		if request != nil {
			if ranks != nil {
				ranks(i).SetOn(request)
			}
			podSet.TopologyRequest = request
		}
	}
	return checkGroups(podSets)
}

// BadTopology returns the mistake that the pod set's topology request is wrong.
func BadTopology(podSet *kueue.PodSet, problem string) *write.Event {
	return Mistake(fmt.Sprintf("Pod set %s: %s", podSet.Name, problem))
}

// SetOn writes the order of the pods into the request.
func (r Ranks) SetOn(request *kueue.PodSetTopologyRequest) {
	if r.IndexLabel != "" {
		request.PodIndexLabel = ptr.To(r.IndexLabel)
	}
	if r.GroupLabel != "" {
		request.SubGroupIndexLabel, request.SubGroupCount = ptr.To(r.GroupLabel), ptr.To(r.Groups)
	}
}

// TopologyOf reads the annotations of one template. It returns nil if there are none, or what is wrong with them.
func TopologyOf(annotations map[string]string, count int32) (*kueue.PodSetTopologyRequest, string) {
	has := func(key string) bool { _, ok := annotations[key]; return ok }
	if !slices.ContainsFunc(topologyAnnotations, has) {
		return nil, ""
	}
	var r kueue.PodSetTopologyRequest
	for _, problem := range []string{
		readLevel(&r, annotations),
		readSlices(&r, annotations, count),
		readGroup(&r, annotations),
	} {
		if problem != "" {
			return nil, problem
		}
	}
	if r.Required == nil && r.Preferred == nil && r.Unconstrained == nil && r.PodSetSliceRequiredTopology == nil &&
		len(r.PodsetSliceRequiredTopologyConstraints) == 0 {
		return nil, "" // unconstrained: "false"
	}
	return &r, ""
}

// readLevel reads the topology level within which all pods must, or should, be placed.
func readLevel(r *kueue.PodSetTopologyRequest, annotations map[string]string) string {
	var given []string
	for _, key := range []string{kueue.PodSetRequiredTopologyAnnotation, kueue.PodSetPreferredTopologyAnnotation,
		kueue.PodSetUnconstrainedTopologyAnnotation} {
		value, ok := annotations[key]
		if !ok {
			continue
		}
		switch key {
		case kueue.PodSetUnconstrainedTopologyAnnotation:
			yes, err := strconv.ParseBool(value)
			if err != nil {
				return fmt.Sprintf("the annotation %s is %q: it must be true or false", key, value)
			}
			if !yes {
				continue
			}
			r.Unconstrained = ptr.To(true)
		case kueue.PodSetRequiredTopologyAnnotation:
			r.Required = ptr.To(value)
		default:
			r.Preferred = ptr.To(value)
		}
		if problem := notALevel(key, value); problem != "" && key != kueue.PodSetUnconstrainedTopologyAnnotation {
			return problem
		}
		given = append(given, key)
	}
	if len(given) > 1 {
		return fmt.Sprintf("at most one of the annotations %s can be set", strings.Join(given, " and "))
	}
	return ""
}

func notALevel(key, value string) string {
	if errs := validation.IsQualifiedName(value); len(errs) > 0 {
		return fmt.Sprintf("the annotation %s is %q: it must be the key of a node label, such as topology.kubernetes.io/zone", key, value)
	}
	return ""
}

// readSlices reads the topology level within which the pods of each slice must be placed.
func readSlices(r *kueue.PodSetTopologyRequest, annotations map[string]string, count int32) string {
	const levelKey, sizeKey, layersKey = kueue.PodSetSliceRequiredTopologyAnnotation, kueue.PodSetSliceSizeAnnotation,
		kueue.PodSetSliceRequiredTopologyConstraintsAnnotation
	level, hasLevel := annotations[levelKey]
	text, hasSize := annotations[sizeKey]
	layers, hasLayers := annotations[layersKey]
	switch {
	case hasLayers && (hasLevel || hasSize):
		return fmt.Sprintf("the annotation %s cannot be combined with %s or %s", layersKey, levelKey, sizeKey)
	case hasLayers:
		return readLayers(r, layers, count)
	case hasLevel != hasSize:
		return fmt.Sprintf("the annotations %s and %s must be set together", levelKey, sizeKey)
	case !hasLevel:
		return ""
	}
	if problem := notALevel(levelKey, level); problem != "" {
		return problem
	}
	size, err := strconv.ParseInt(text, 10, 32)
	if err != nil || size < 1 || size > int64(count) {
		return fmt.Sprintf("the annotation %s is %q: it must be a number from 1 to %d, the pods of the pod set",
			sizeKey, text, count)
	}
	r.PodSetSliceRequiredTopology, r.PodSetSliceSize = ptr.To(level), ptr.To(int32(size))
	return ""
}

// mostLayers is how many layers of slices the API accepts.
const mostLayers = 3

// readLayers reads several layers of slices, the largest first: each layer divides the one before it.
func readLayers(r *kueue.PodSetTopologyRequest, text string, count int32) string {
	const key = kueue.PodSetSliceRequiredTopologyConstraintsAnnotation
	var layers []kueue.PodsetSliceRequiredTopologyConstraint
	if err := json.Unmarshal([]byte(text), &layers); err != nil {
		return fmt.Sprintf(`the annotation %s must be a JSON list such as [{"topology": "example.com/rack", "size": 4}]: %v`, key, err)
	}
	if len(layers) == 0 || len(layers) > mostLayers {
		return fmt.Sprintf("the annotation %s has %d layers: it must have 1 to %d", key, len(layers), mostLayers)
	}
	within := count
	for i, layer := range layers {
		if problem := notALevel(key, layer.Topology); problem != "" {
			return problem
		}
		if layer.Size < 1 || layer.Size > within {
			return fmt.Sprintf("the annotation %s has a slice of %d pods: it must have from 1 to %d, the pods of what it divides",
				key, layer.Size, within)
		}
		if i > 0 && within%layer.Size != 0 {
			return fmt.Sprintf("the annotation %s has slices of %d pods in slices of %d: the larger must be a multiple of the smaller",
				key, layer.Size, within)
		}
		within = layer.Size
	}
	r.PodsetSliceRequiredTopologyConstraints = layers
	return ""
}

// readGroup reads which pod sets are placed together.
func readGroup(r *kueue.PodSetTopologyRequest, annotations map[string]string) string {
	const key = kueue.PodSetGroupNameAnnotation
	group, ok := annotations[key]
	switch {
	case !ok:
		return ""
	case group == "" || len(group) > validation.LabelValueMaxLength:
		return fmt.Sprintf("the annotation %s is %q: it must have 1 to %d characters", key, group,
			validation.LabelValueMaxLength)
	case r.Required == nil && r.Preferred == nil:
		return fmt.Sprintf("the annotation %s also needs %s or %s", key, kueue.PodSetRequiredTopologyAnnotation,
			kueue.PodSetPreferredTopologyAnnotation)
	}
	r.PodSetGroupName = ptr.To(group)
	return ""
}

// checkGroups returns a mistake if pod sets of one group ask for different domains.
func checkGroups(podSets []kueue.PodSet) *write.Event {
	first := map[string]*kueue.PodSet{}
	for podSet := range pointers.To(podSets) {
		if podSet.TopologyRequest == nil || podSet.TopologyRequest.PodSetGroupName == nil {
			continue
		}
		group := *podSet.TopologyRequest.PodSetGroupName
		other := first[group]
		if other == nil {
			first[group] = podSet
			continue
		}
		if a, b := podSet.TopologyRequest, other.TopologyRequest; !ptr.Equal(a.Required, b.Required) ||
			!ptr.Equal(a.Preferred, b.Preferred) {
			return BadTopology(podSet,
				fmt.Sprintf("it is in group %s with pod set %s, and must ask for the same %s or %s", group, other.Name,
					kueue.PodSetRequiredTopologyAnnotation, kueue.PodSetPreferredTopologyAnnotation))
		}
	}
	return nil
}
