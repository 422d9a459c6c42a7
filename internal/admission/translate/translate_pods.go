package translate

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/slim"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/podspec"
)

// occupiesNode reports whether the pod uses capacity of a node: it is bound and has not ended. A terminating pod uses
// it until it is deleted.
func occupiesNode(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" && !podspec.HasEnded(pod) }

// podOf translates a pod that uses capacity of a node.
func podOf(pod *corev1.Pod) place.Pod {
	out := place.Pod{
		Key: KeyOf(pod), Node: pod.Spec.NodeName,
		HostPorts: hostPortsOf(&pod.Spec), Resident: isResident(pod), Terminating: leavesUserChosenNode(pod),
		ExclusiveKey: exclusiveKeyOf(pod),
	}
	if out.Workload, out.PodSet = workloadOf(pod); out.PodSet != "" {
		out.Part = partOf(pod)
		out.Rank, out.HasRank = podspec.IndexOf(pod)
	}
	taken := podspec.RequestsOnNode(pod)
	out.Requests = make(map[string]int64, len(taken))
	for name, amount := range taken {
		out.Requests[string(name)] = quota.FromQuantity(name, amount)
	}
	return out
}

// exclusiveKeyOf returns the node label whose domain the pod's Job claims for itself, "" if it shares. The engine
// decides whether the claim counts. As for JobSet's own controller, the annotation means that on pods of JobSets only.
func exclusiveKeyOf(pod *corev1.Pod) string {
	if pod.Labels[jobset.JobSetNameKey] == "" {
		return ""
	}
	return pod.Annotations[jobset.ExclusiveKey]
}

// leavesUserChosenNode reports whether the pod is terminating and its node was chosen by node labels that the user
// set for its Job: its replacement may be placed elsewhere.
func leavesUserChosenNode(pod *corev1.Pod) bool {
	_, byHand := pod.Spec.NodeSelector[jobset.NamespacedJobKey]
	return byHand && !pod.DeletionTimestamp.IsZero()
}

// workloadOf returns the Workload and the pod set that the pod belongs to, as its admission recorded on it; zero values
// if no admission placed the pod.
func workloadOf(pod *corev1.Pod) (engine.Key, string) {
	name, podSet := pod.Annotations[kueue.WorkloadAnnotation], pod.Labels[kueue.PodSetLabel]
	if name == "" || podSet == "" {
		return engine.Key{}, ""
	}
	return engine.Key{Namespace: pod.Namespace, Name: name}, podSet
}

// partOf returns which Job of a replicated job the pod belongs to: a pod never takes the places of another Job.
func partOf(pod *corev1.Pod) place.Part {
	if from, to, ok := podspec.RanksOf(pod); ok {
		return place.Part{From: from, To: to}
	}
	index, err := strconv.ParseInt(pod.Labels[jobset.JobIndexKey], 10, 32)
	of, wrong := strconv.ParseInt(pod.Labels[jobset.ReplicatedJobReplicas], 10, 32)
	if err != nil || wrong != nil || index < 0 || of < 1 || index >= of {
		return place.Part{}
	}
	return place.Part{Index: int32(index), Of: int32(of)}
}

// isResident reports whether the pod runs on whatever happens to batch work: it belongs to a service, to a DaemonSet or
// to the kubelet. A pod that is controlled by another pod, as Spark executors are by their driver, ends with it.
func isResident(pod *corev1.Pod) bool {
	return slim.ControlledByOthers(pod) && metav1.GetControllerOf(pod).Kind != "Pod"
}

// hostPortsOf returns the host ports that a pod takes. With hostNetwork every port that it declares is one.
func hostPortsOf(spec *corev1.PodSpec) []place.HostPort {
	var out []place.HostPort
	for _, containers := range [][]corev1.Container{spec.Containers, sidecars(spec.InitContainers)} {
		for i := range containers {
			for _, port := range containers[i].Ports {
				number := port.HostPort
				if number == 0 && spec.HostNetwork {
					number = port.ContainerPort
				}
				if number != 0 {
					out = append(out, place.HostPort{IP: port.HostIP, Protocol: port.Protocol, Port: number})
				}
			}
		}
	}
	return out
}

// sidecars returns the init containers that keep running beside the main containers.
func sidecars(inits []corev1.Container) []corev1.Container {
	return slices.DeleteFunc(slices.Clone(inits), func(c corev1.Container) bool {
		return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
	})
}

// unschedulableOn returns the nodes that an admission gave to the pod and that kube-scheduler cannot bind it to, as its
// PodScheduled condition says; nil if it does not say so.
func unschedulableOn(pod *corev1.Pod) []string {
	if pod.Spec.NodeName != "" || podspec.HasEnded(pod) || !pod.DeletionTimestamp.IsZero() {
		return nil
	}
	if workload, _ := workloadOf(pod); workload == (engine.Key{}) {
		return nil
	}
	if refused, why := refusalOf(pod); !refused || isGangRefusal(why) || isPodRefusal(why) {
		return nil
	}
	return requiredHosts(&pod.Spec)
}

// refusalOf reports whether kube-scheduler found no node for the pod, and its message.
func refusalOf(pod *corev1.Pod) (refused bool, message string) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return true, c.Message
		}
	}
	return false, ""
}

// isGangRefusal reports whether a pod is not bound because others of its PodGroup are not: kube-scheduler marks all of
// them unschedulable, and gives the group's message even to pods that would fit.
func isGangRefusal(message string) bool {
	return strings.Contains(message, "minCount") || strings.Contains(message, "pod group")
}

// isCapacityRefusal reports whether all that kube-scheduler holds against the nodes, as returned by nodeRefusals, is
// that they are full.
func isCapacityRefusal(why string) bool {
	for reason := range strings.SplitSeq(why, ", ") {
		_, reason, _ = strings.Cut(reason, " ") // the number of nodes
		if !strings.HasPrefix(reason, "Insufficient ") && reason != "Too many pods" &&
			!strings.HasPrefix(reason, "node(s) didn't have free ports") {
			return false
		}
	}
	return true
}

// isPodRefusal reports whether kube-scheduler would bind the pod to no node at all, for instance because its claim is
// missing or not bound yet: another place would not help. A complaint about nodes begins with their number.
func isPodRefusal(message string) bool {
	_, why, found := strings.Cut(message, nodesAvailable)
	return found && why != "" && !unicode.IsDigit(rune(why[0])) && !strings.HasPrefix(why, "node(s) ")
}

// nodesAvailable stands in kube-scheduler's messages between the number of nodes and the complaint about them.
const nodesAvailable = " nodes are available: "

// nodeRefusals returns what a kube-scheduler message holds against the nodes of the pod's places, leaving out the
// nodes that do not match the pod's selector, which are all the others.
func nodeRefusals(message string) string {
	_, why, found := strings.Cut(message, nodesAvailable)
	if !found {
		return message
	}
	why, _, _ = strings.Cut(why, ". ")
	reasons := slices.DeleteFunc(strings.Split(strings.TrimSuffix(why, "."), ", "), func(reason string) bool {
		return strings.HasSuffix(reason, "node(s) didn't match Pod's node affinity/selector")
	})
	return strings.Join(reasons, ", ")
}

// requiredHosts returns the nodes that the pod's node selector or affinity allows, by hostname; nil if it does not
// restrict them.
func requiredHosts(spec *corev1.PodSpec) []string {
	if host := spec.NodeSelector[place.Hostname]; host != "" {
		return []string{host}
	}
	var out []string
	for _, term := range podspec.RequiredTerms(spec) {
		for _, e := range term.MatchExpressions {
			if e.Key == place.Hostname && e.Operator == corev1.NodeSelectorOpIn {
				out = append(out, e.Values...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// IsRelevantPod reports whether a new pod matters to the engine: most are not bound yet.
func IsRelevantPod(pod *corev1.Pod) bool {
	return occupiesNode(pod) || len(unschedulableOn(pod)) > 0
}

// podChangeMatters reports whether a pod update matters to the engine: most are containers that start.
func podChangeMatters(before, after *corev1.Pod) bool {
	return before.UID != after.UID ||
		occupiesNode(before) != occupiesNode(after) ||
		before.Spec.NodeName != after.Spec.NodeName ||
		leavesUserChosenNode(before) != leavesUserChosenNode(after) ||
		!slices.Equal(unschedulableOn(before), unschedulableOn(after)) ||
		refusalChanged(before, after) ||
		occupiesNode(after) && !equality.Semantic.DeepEqual(podspec.RequestsOnNode(before), podspec.RequestsOnNode(after))
}

// refusalChanged reports whether kube-scheduler now holds something else against the nodes of the pod's places.
func refusalChanged(before, after *corev1.Pod) bool {
	_, was := refusalOf(before)
	_, is := refusalOf(after)
	return was != is && len(unschedulableOn(after)) > 0 && nodeRefusals(was) != nodeRefusals(is)
}
