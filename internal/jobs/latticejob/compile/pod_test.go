package compile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/api/muster"
)

// templateOf is what the pods of the one task of the job are made from.
func templateOf(t *testing.T, task string) *corev1.PodSpec {
	t.Helper()
	result, err := Compile(jobOf(t, task), everywhere())
	if err != nil {
		t.Fatal(err)
	}
	return &result.VCJob.Spec.Tasks[0].Template.Spec
}

// What is said twice is there once: lists of a template are maps by name or number to the API server, which refuses
// what is in one twice.
func TestWhatIsSaidTwiceIsThereOnce(t *testing.T) {
	pod := templateOf(t, "imagePullSecrets: [s, s]\nworkload: {containers: {main: {image: i}}, resources: {s: {type: secret, id: x, params: {provider: p}}}, "+
		"service: {ports: {api: {port: 80, targetPort: 8080}, dns: {port: 53, targetPort: 8080, protocol: UDP}, web: {port: 81, targetPort: 8080}}}}")
	if diff := cmp.Diff([]corev1.LocalObjectReference{{Name: "j-t-s"}}, pod.ImagePullSecrets); diff != "" {
		t.Errorf("secrets of images (-want +got):\n%s", diff)
	}
	want := []corev1.ContainerPort{{Name: "api", ContainerPort: 8080, Protocol: corev1.ProtocolTCP},
		{Name: "dns", ContainerPort: 8080, Protocol: corev1.ProtocolUDP}}
	if diff := cmp.Diff(want, pod.Containers[0].Ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
}

// On its node's network a pod has each port once, whichever of its containers listens there.
func TestPortsOnTheNodesNetworkAreOneContainers(t *testing.T) {
	const workload = "workload: {containers: {a: {image: i}, b: {image: i}}, service: {ports: {http: {port: 80}}}}"
	for task, want := range map[string][]int{workload: {1, 1}, "hostNetwork: true\n" + workload: {1, 0}} {
		pod := templateOf(t, task)
		if got := []int{len(pod.Containers[0].Ports), len(pod.Containers[1].Ports)}; !cmp.Equal(want, got) {
			t.Errorf("%s: containers have %v ports, want %v", task, got, want)
		}
	}
}

// A container may have a name that leaves no room for more in that of a volume, and so may another that begins like it.
func TestFilesOfContainersWithLongNames(t *testing.T) {
	long := strings.Repeat("c", 62)
	const files = ": {image: i, files: {/f: {content: x}, /g: {binaryContent: YQ==}}}"
	pod := templateOf(t, "workload: {containers: {"+long+"a"+files+", "+long+"b"+files+", short"+files+"}}")
	names := map[string]bool{}
	for _, v := range pod.Volumes {
		if names[v.Name] || len(validation.IsDNS1123Label(v.Name)) > 0 {
			t.Errorf("volume %s is there twice, or cannot be", v.Name)
		}
		names[v.Name] = true
	}
	if len(names) != 6 || !names["short-files"] || !names["short-files-bin"] {
		t.Errorf("volumes %v", names)
	}
	for _, c := range pod.Containers {
		for _, m := range c.VolumeMounts {
			if !names[m.Name] {
				t.Errorf("container %s mounts %s, which is not there", c.Name, m.Name)
			}
		}
	}
}

// TestClaimsOfTheSameNameSayForWhichVolumeTheyAre: the parts of their names are joined with -.
func TestClaimsOfTheSameNameSayForWhichVolumeTheyAre(t *testing.T) {
	for want, c := range map[string]struct{ job, task, volume, id string }{
		"a/b/c-d":      {"a", "b", "c-d", ""},
		"a-b/c/d":      {"a-b", "c", "d", ""},
		"shared/b-c-d": {"x", "y", "z", "b-c-d"},
		"vol-b/c/d":    {"vol-b", "c", "d", ""},
	} {
		id := ""
		if c.id != "" {
			id = ", id: " + c.id
		}
		job := jobOf(t, "workload: {resources: {"+c.volume+": {type: volume, params: {size: 1Gi}"+id+"}}}")
		job.Name, job.Spec.Tasks = c.job, map[string]lattice.JobTaskSpec{c.task: job.Spec.Tasks["t"]}
		result, err := Compile(job, everywhere())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range result.Objects {
			if claim, is := o.(*corev1.PersistentVolumeClaim); is {
				if name := claim.Name; name != "a-b-c-d" && name != "vol-b-c-d" ||
					claim.Annotations[muster.MadeForAnnotation] != want {
					t.Errorf("%+v: the claim %s was made for %q, want %q", c, name, claim.Annotations[muster.MadeForAnnotation], want)
				}
			}
		}
	}
}
