package podproblem

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// FailedMount is the reason of a kubelet's events about a volume that it cannot mount. Only they say why the containers
// of a pod are not created: its status does not.
const FailedMount = "FailedMount"

// mountPatience is how old an event may be: the kubelet tries again, and repeats the event, at least that often.
const mountPatience = 5 * time.Minute

// Mounts is what kubelets said of volumes that they could not mount. The zero value says nothing.
type Mounts struct {
	// reported holds it by the name of the pod; missing holds, by what pods mount, what does not exist.
	reported, missing map[string]string
}

// AwaitingMounts returns the pods of these whose events may say why they do not start, at most as many as given: of
// pods that mount the same, the first one by name.
func AwaitingMounts(pods []corev1.Pod, most int) []*corev1.Pod {
	first := map[string]*corev1.Pod{}
	for i := range pods {
		if pod := &pods[i]; awaitsMounts(pod) {
			if known := first[mountsOf(pod)]; known == nil || pod.Name < known.Name {
				first[mountsOf(pod)] = pod
			}
		}
	}
	var out []*corev1.Pod
	for _, pod := range first {
		out = append(out, pod)
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return out[:min(len(out), most)]
}

// awaitsMounts reports whether a node has the pod, and no container of the pod was ever created.
func awaitsMounts(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.DeletionTimestamp.IsZero() &&
		(pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "") &&
		!slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses),
			func(s corev1.ContainerStatus) bool {
				return s.State.Running != nil || s.State.Terminated != nil
			})
}

// mountsOf names the ConfigMaps, Secrets and claims that the pod mounts, so that pods can be compared.
func mountsOf(pod *corev1.Pod) string {
	var out []string
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.ConfigMap != nil:
			out = append(out, "configmap "+v.ConfigMap.Name)
		case v.Secret != nil:
			out = append(out, "secret "+v.Secret.SecretName)
		case v.PersistentVolumeClaim != nil:
			out = append(out, "claim "+v.PersistentVolumeClaim.ClaimName)
		case v.Projected != nil:
			for _, source := range v.Projected.Sources {
				if source.ConfigMap != nil {
					out = append(out, "configmap "+source.ConfigMap.Name)
				}
				if source.Secret != nil {
					out = append(out, "secret "+source.Secret.Name)
				}
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

var (
	// setUp begins the kubelet's message about one volume.
	setUp = regexp.MustCompile(`^MountVolume\.SetUp failed for volume ("[^"]*") : `)
	// notThere is how the message ends if what the volume holds does not exist. Of several objects, or of one in another
	// place of the message, nothing is concluded.
	notThere = regexp.MustCompile(`^(configmap|secret) "[^"]*" not found$`)
)

// Note takes in the events of a pod, of any reason, as of now. The latest one about a single volume counts, or else the
// latest one, which may only say that the time is over.
func (m *Mounts) Note(pod *corev1.Pod, events []corev1.Event, now time.Time) {
	if m.reported == nil {
		m.reported, m.missing = map[string]string{}, map[string]string{}
	}
	var latest *corev1.Event
	for i := range events {
		e := &events[i]
		if e.Reason != FailedMount || e.InvolvedObject.UID != pod.UID || now.Sub(lastSeen(e)) > mountPatience {
			continue
		}
		if latest == nil || isOfOneVolume(e) && !isOfOneVolume(latest) ||
			isOfOneVolume(e) == isOfOneVolume(latest) && lastSeen(e).After(lastSeen(latest)) {
			latest = e
		}
	}
	if latest == nil {
		return
	}
	message := latest.Message
	if volume := setUp.FindStringSubmatch(message); volume != nil {
		cause := strings.TrimPrefix(message, volume[0])
		message = "volume " + volume[1] + " cannot be mounted: " + cause
		if notThere.MatchString(cause) {
			m.missing[mountsOf(pod)] = message
		}
	}
	m.reported[pod.Name] = message
}

// MissingConfigMap returns the ConfigMap that does not exist according to the events of the pod, "" for none.
func (m Mounts) MissingConfigMap(pod *corev1.Pod) string {
	_, cause, _ := strings.Cut(m.missing[mountsOf(pod)], "cannot be mounted: ")
	name, is := strings.CutPrefix(cause, `configmap "`)
	if !is {
		return ""
	}
	return strings.TrimSuffix(name, `" not found`)
}

// Forget drops what the events of the pod say: it holds no more.
func (m *Mounts) Forget(pod *corev1.Pod) {
	delete(m.reported, pod.Name)
	delete(m.missing, mountsOf(pod))
}

func isOfOneVolume(e *corev1.Event) bool { return setUp.MatchString(e.Message) }

// lastSeen returns when the event occurred last.
func lastSeen(e *corev1.Event) time.Time {
	out := e.LastTimestamp.Time
	for _, at := range []time.Time{e.EventTime.Time, e.CreationTimestamp.Time} {
		if at.After(out) {
			out = at
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(out) {
		out = e.Series.LastObservedTime.Time
	}
	return out
}

// Of returns the problem of a pod as the function of does. Of a pod without any, whose containers are not created, it
// says which volume could not be mounted. That an object does not exist holds for all pods that mount the same; another
// cause may be that of one node.
func (m Mounts) Of(pod *corev1.Pod, of func(*corev1.Pod) (reason, message string)) (reason, message string) {
	reason, message = of(pod)
	if reason != "" || !awaitsMounts(pod) {
		return reason, message
	}
	if problem := cmp.Or(m.missing[mountsOf(pod)], m.reported[pod.Name]); problem != "" {
		return FailedMount, problem
	}
	return "", ""
}
