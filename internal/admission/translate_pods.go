package admission

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

// takesRoom reports whether the pod is on a node and has not ended. One that is being deleted takes its room until it
// is gone.
func takesRoom(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" && !hasEnded(pod) }

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// podOf is a pod that takes room in the engine's words.
func podOf(pod *corev1.Pod) place.Pod {
	out := place.Pod{
		Key: keyOf(pod), Node: pod.Spec.NodeName,
		HostPorts: hostPortsOf(&pod.Spec), Resident: isResident(pod), Terminating: goes(pod),
		ExclusiveKey: pod.Annotations[jobset.ExclusiveKey],
	}
	if out.Workload, out.PodSet = workloadOf(pod); out.PodSet != "" {
		out.Part = partOf(pod)
	}
	taken := podspec.Taken(pod)
	out.Requests = make(map[string]int64, len(taken))
	for name, amount := range taken {
		out.Requests[string(name)] = quota.FromQuantity(name, amount)
	}
	return out
}

// goes reports whether a pod that goes where people have said by labels is being deleted: another that comes for it is somewhere else.
func goes(pod *corev1.Pod) bool {
	_, byHand := pod.Spec.NodeSelector[jobset.NamespacedJobKey]
	return byHand && !pod.DeletionTimestamp.IsZero()
}

// workloadOf is the Workload that the pod runs for and the pod set that it is of, as its admission wrote on it; nothing
// where it was not given a place by one.
func workloadOf(pod *corev1.Pod) (engine.Key, string) {
	name, podSet := pod.Annotations[kueue.WorkloadAnnotation], pod.Labels[kueue.PodSetLabel]
	if name == "" || podSet == "" {
		return engine.Key{}, ""
	}
	return engine.Key{Namespace: pod.Namespace, Name: name}, podSet
}

// partOf is the Job of a replicated job that the pod is of: no pod takes the places of another Job.
func partOf(pod *corev1.Pod) place.Part {
	if from, to, said := podspec.RanksOf(pod); said {
		return place.Part{From: from, To: to}
	}
	index, err := strconv.ParseInt(pod.Labels[jobset.JobIndexKey], 10, 32)
	of, wrong := strconv.ParseInt(pod.Labels[jobset.ReplicatedJobReplicas], 10, 32)
	if err != nil || wrong != nil || index < 0 || of < 1 || index >= of {
		return place.Part{}
	}
	return place.Part{Index: int32(index), Of: int32(of)}
}

// isResident reports whether the pod stays though all work ends: it is of a service, of a DaemonSet, or the kubelet's own. What another
// pod controls, as Spark's driver does its executors, ends.
func isResident(pod *corev1.Pod) bool {
	return slim.ControlledByOthers(pod) && metav1.GetControllerOf(pod).Kind != "Pod"
}

// hostPortsOf are the ports of its node that a pod takes. On the network of the node each port that it names is one.
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

// sidecars are the init containers that run beside the others.
func sidecars(inits []corev1.Container) []corev1.Container {
	return slices.DeleteFunc(slices.Clone(inits), func(c corev1.Container) bool {
		return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
	})
}

// noRoomAt are the nodes of which kube-scheduler says that it cannot bind the pod to any, where it was given a place by
// its admission; nil where it does not say so.
func noRoomAt(pod *corev1.Pod) []string {
	if pod.Spec.NodeName != "" || hasEnded(pod) || !pod.DeletionTimestamp.IsZero() {
		return nil
	}
	if workload, _ := workloadOf(pod); workload == (engine.Key{}) {
		return nil
	}
	if refused, why := refusalOf(pod); !refused || isOfItsGang(why) || isOfThePod(why) {
		return nil
	}
	return placesOf(&pod.Spec)
}

// refusalOf is whether kube-scheduler finds no node for the pod, and what it says.
func refusalOf(pod *corev1.Pod) (refused bool, message string) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return true, c.Message
		}
	}
	return false, ""
}

// isOfItsGang reports whether a pod is not bound because others of its PodGroup are not: kube-scheduler calls all of them
// unschedulable, with the words of the group for those that have room.
func isOfItsGang(message string) bool {
	return strings.Contains(message, "minCount") || strings.Contains(message, "pod group")
}

// isOfRoom reports whether all that kube-scheduler has against nodes is that they are full, as againstNodes gives it.
func isOfRoom(why string) bool {
	for reason := range strings.SplitSeq(why, ", ") {
		_, reason, _ = strings.Cut(reason, " ") // the number of nodes
		if !strings.HasPrefix(reason, "Insufficient ") && reason != "Too many pods" && !strings.HasPrefix(reason, "node(s) didn't have free ports") {
			return false
		}
	}
	return true
}

// isOfThePod reports whether kube-scheduler would put a pod on no node whatever that is like, as one whose claim is not there or not
// bound yet: no other place is better than the one that it has. What it has against nodes begins with their number.
func isOfThePod(message string) bool {
	_, why, found := strings.Cut(message, nodesAvailable)
	return found && why != "" && !unicode.IsDigit(rune(why[0])) && !strings.HasPrefix(why, "node(s) ")
}

// nodesAvailable is after the number of nodes, and before what kube-scheduler has against them.
const nodesAvailable = " nodes are available: "

// againstNodes is what a message of kube-scheduler has against the nodes that a pod was to go to: all others do not match its selector.
func againstNodes(message string) string {
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

// placesOf are the nodes that the pod may go to by their name in places, nil if all.
func placesOf(spec *corev1.PodSpec) []string {
	if host := spec.NodeSelector[place.Hostname]; host != "" {
		return []string{host}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	var out []string
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key == place.Hostname && e.Operator == corev1.NodeSelectorOpIn {
				out = append(out, e.Values...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// podIsNews reports whether a pod that is new is any to the engine: most are not bound yet.
func podIsNews(pod *corev1.Pod) bool {
	return takesRoom(pod) || len(noRoomAt(pod)) > 0
}

// podConcerns reports whether a change of a pod is any to the engine: most are those of containers that start.
func podConcerns(before, after *corev1.Pod) bool {
	return before.UID != after.UID ||
		takesRoom(before) != takesRoom(after) ||
		before.Spec.NodeName != after.Spec.NodeName ||
		goes(before) != goes(after) ||
		!slices.Equal(noRoomAt(before), noRoomAt(after)) ||
		refusedOtherwise(before, after) ||
		takesRoom(after) && !equality.Semantic.DeepEqual(podspec.Taken(before), podspec.Taken(after))
}

// refusedOtherwise reports whether kube-scheduler has something else against the nodes of a pod's places than before.
func refusedOtherwise(before, after *corev1.Pod) bool {
	_, was := refusalOf(before)
	_, is := refusalOf(after)
	return was != is && len(noRoomAt(after)) > 0 && againstNodes(was) != againstNodes(is)
}
