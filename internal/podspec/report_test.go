package podspec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

var reporting = Agent{Image: "muster:1", Server: "muster.svc:9444", CA: "pem"}

// asking returns a template with two containers whose pods are to report, by the annotation's value.
func asking(value string) corev1.PodTemplateSpec {
	var out corev1.PodTemplateSpec
	if value != "" {
		out.Annotations = map[string]string{"muster.dev/progress": value}
	}
	out.Spec.InitContainers = []corev1.Container{{Name: "init"}}
	out.Spec.Containers = []corev1.Container{{Name: "train", Command: []string{"train"},
		Env: []corev1.EnvVar{{Name: "OWN", Value: "$(KUBEFLOW_TRAINER_SERVER_URL)"}}}, {Name: "log"}}
	return out
}

// reportersIn returns the containers with each variable of Trainer's protocol, in order, and fails if one lacks the
// token.
func reportersIn(t *testing.T, template corev1.PodTemplateSpec) (names []string) {
	t.Helper()
	for c := range Containers(&template.Spec) {
		env, own := map[string]string{}, -1
		for i, v := range c.Env {
			if strings.HasPrefix(v.Name, "KUBEFLOW_") {
				env[v.Name] = v.Value
			} else if v.Name == "OWN" {
				own = i
			}
		}
		if len(env) < 3 {
			continue
		}
		names = append(names, c.Name)
		if own >= 0 && own < 3 {
			t.Errorf("%s: a variable that may refer to the added ones comes before them", c.Name)
		}
		want := map[string]string{
			"KUBEFLOW_TRAINER_SERVER_URL":     "https://muster.svc:9444/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/job/status",
			"KUBEFLOW_TRAINER_SERVER_CA_CERT": "/var/run/secrets/kubeflow/trainer/ca.crt",
			"KUBEFLOW_TRAINER_SERVER_TOKEN":   "/var/run/secrets/kubeflow/trainer/token",
		}
		if diff := cmp.Diff(want, env); diff != "" {
			t.Errorf("%s: variables (-want +got):\n%s", c.Name, diff)
		}
		if n := len(c.VolumeMounts); n == 0 || c.VolumeMounts[n-1].MountPath != "/var/run/secrets/kubeflow/trainer" {
			t.Errorf("%s: mounts %+v, want the token and the certificates", c.Name, c.VolumeMounts)
		}
	}
	return names
}

func TestContainersThatAreToReportGetWhatItTakes(t *testing.T) {
	withAgent := func(value string) corev1.PodTemplateSpec {
		out, err := reporting.Inject(asking(value), Round{ID: "uid", Min: 1, Max: 2, Index: -1})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	changed := func(change func(*corev1.PodTemplateSpec)) corev1.PodTemplateSpec {
		out := asking("true")
		change(&out)
		return out
	}
	for what, test := range map[string]struct {
		template corev1.PodTemplateSpec
		agent    Agent
		want     []string
	}{
		"asked for":                      {asking("true"), reporting, []string{"train", "log"}},
		"not asked for":                  {asking(""), reporting, nil},
		"declined":                       {asking("false"), reporting, nil},
		"with the agent":                 {withAgent(""), reporting, []string{"train"}},
		"with the agent, and asked for":  {withAgent("true"), reporting, []string{"train", "log"}},
		"with the agent, and declined":   {withAgent("false"), reporting, nil},
		"the operator serves no agents":  {asking("true"), Agent{}, nil},
		"its certificates are not there": {asking("true"), Agent{Server: "muster.svc:9444"}, nil},
		"one reports elsewhere": {changed(func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "KUBEFLOW_TRAINER_SERVER_URL", Value: "https://trainer"}}
		}), reporting, []string{"log"}},
		"one has its own token there": {changed(func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[1].VolumeMounts = []corev1.VolumeMount{{Name: "x", MountPath: "/var/run/secrets/kubeflow/trainer"}}
		}), reporting, []string{"train"}},
		"a volume has the name": {changed(func(t *corev1.PodTemplateSpec) {
			t.Spec.Volumes = []corev1.Volume{{Name: "muster-progress"}}
		}), reporting, nil},
	} {
		before := test.template.DeepCopy()
		got := test.agent.LetReport(test.template, "ns", "job")
		if diff := cmp.Diff(test.want, reportersIn(t, got)); diff != "" {
			t.Errorf("%s: containers that report (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(before, &test.template); diff != "" {
			t.Errorf("%s: the template itself was changed:\n%s", what, diff)
		}
		if has := hasVolume(&got.Spec, reportVolume); len(test.want) > 0 != has && what != "a volume has the name" {
			t.Errorf("%s: has the volume: %t", what, has)
		}
		if again := test.agent.LetReport(got, "ns", "other"); !cmp.Equal(got, again) {
			t.Errorf("%s: a second time, by the job's owner, changes it", what)
		}
	}
}

// TestCertificatesComeFromThePodItself: no object in the namespace of the job has to be made for them.
func TestCertificatesComeFromThePodItself(t *testing.T) {
	got := reporting.LetReport(asking("true"), "ns", "job")
	sources := got.Spec.Volumes[0].Projected.Sources
	if token := sources[0].ServiceAccountToken; token == nil || token.Audience != "rendezvous.muster.dev" ||
		token.Path != "token" {
		t.Errorf("the token is %+v", token)
	}
	file := sources[1].DownwardAPI.Items[0]
	if file.Path != "ca.crt" || file.FieldRef.FieldPath != "metadata.annotations['muster.dev/progress-authority']" ||
		got.Annotations["muster.dev/progress-authority"] != "pem" {
		t.Errorf("the certificates come from %+v, annotations %v", file, got.Annotations)
	}
}
