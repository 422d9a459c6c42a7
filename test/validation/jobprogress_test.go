package validation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/musterhq/muster/internal/install"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/testcluster"
)

// TestBatchJobsGetWhatPodsOfOtherJobsGetToReport: the policy for batch Jobs adds the same as the operator adds to the
// pods of other kinds of job, except that it does not know where to report.
func TestBatchJobsGetWhatPodsOfOtherJobsGetToReport(t *testing.T) {
	cluster := testcluster.Get(t)
	namespace := cluster.Namespace(t)
	agent := podspec.Agent{Server: "muster.svc:9444", CA: "pem"}
	create := func(user string, template corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
		t.Helper()
		config := rest.CopyConfig(cluster.Config)
		if user != "" {
			config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
		}
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{GenerateName: "j-"}}
		job.Spec.Template = template
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		made, err := kubernetes.NewForConfigOrDie(config).BatchV1().Jobs(namespace).Create(t.Context(), job,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Fatal(err)
		}
		for _, label := range []string{"batch.kubernetes.io/job-name", "job-name", "batch.kubernetes.io/controller-uid",
			"controller-uid"} {
			delete(made.Spec.Template.Labels, label)
		}
		return &made.Spec.Template
	}
	asking := func(change func(*corev1.PodTemplateSpec)) corev1.PodTemplateSpec {
		out := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			"muster.dev/progress": "true"}}}
		out.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "i"}}
		out.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
		change(&out)
		return out
	}
	mount := func(path string) []corev1.VolumeMount { return []corev1.VolumeMount{{Name: "own", MountPath: path}} }
	own := []corev1.Volume{{Name: "own", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	for what, template := range map[string]corev1.PodTemplateSpec{
		"a container": asking(func(*corev1.PodTemplateSpec) {}),
		"containers with variables, mounts and volumes": asking(func(p *corev1.PodTemplateSpec) {
			p.Spec.Volumes = own
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "$(KUBEFLOW_TRAINER_SERVER_URL)"}, {Name: "B"}}
			p.Spec.Containers[0].VolumeMounts = mount("/own")
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "d", Image: "i"})
		}),
		"one that reports elsewhere": asking(func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "KUBEFLOW_TRAINER_SERVER_TOKEN", Value: "/own"}}
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "d", Image: "i"})
		}),
		"all report elsewhere": asking(func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "KUBEFLOW_TRAINER_SERVER_URL", Value: "https://own"}}
		}),
		"something else where the token would be": asking(func(p *corev1.PodTemplateSpec) {
			p.Spec.Volumes = own
			p.Spec.Containers[0].VolumeMounts = mount("/var/run/secrets/kubeflow/trainer")
		}),
		"a volume of the name": asking(func(p *corev1.PodTemplateSpec) {
			p.Spec.Volumes = []corev1.Volume{{Name: "muster-progress"}}
		}),
		"not asked":    asking(func(p *corev1.PodTemplateSpec) { p.Annotations = nil }),
		"declined":     asking(func(p *corev1.PodTemplateSpec) { p.Annotations["muster.dev/progress"] = "false" }),
		"another word": asking(func(p *corev1.PodTemplateSpec) { p.Annotations["muster.dev/progress"] = "yes" }),
	} {
		want := create(install.DefaultOperatorUser, agent.LetReport(template, namespace, "j"))
		delete(want.Annotations, "muster.dev/progress-authority")
		for i := range want.Spec.Containers {
			for j := range want.Spec.Containers[i].Env {
				if v := &want.Spec.Containers[i].Env[j]; strings.HasPrefix(v.Value, "https://muster.svc") {
					v.Value, v.ValueFrom = "", &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1",
						FieldPath: "metadata.annotations['muster.dev/progress-url']"}}
				}
			}
		}
		if diff := cmp.Diff(want, create("", template)); diff != "" {
			t.Errorf("%s (-as for other jobs +batch Job):\n%s", what, diff)
		}
	}
}
