package podenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

func facts(t *testing.T) Facts {
	volume := t.TempDir()
	if err := os.WriteFile(filepath.Join(volume, "vars"), []byte("FROM_FILE='in a file'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	service := func(namespace, name, ip string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}},
		}
	}
	return Facts{
		HostIP: "192.0.2.1", PodIPs: []string{"10.64.0.2"},
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")},
		Services: []*corev1.Service{
			service("default", "kubernetes", "10.96.0.1"), service("ml", "web", "10.96.0.2"),
			service("ml", "headless", "None"), service("other", "db", "10.96.0.3"),
		},
		ConfigMap: func(namespace, name string) (*corev1.ConfigMap, error) {
			if namespace != "ml" || name != "settings" {
				return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
			}
			return &corev1.ConfigMap{Data: map[string]string{"RATE": "0.1", "MODE": "fast"}}, nil
		},
		Secret: func(namespace, name string) (*corev1.Secret, error) {
			if namespace != "ml" || name != "keys" {
				return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
			}
			return &corev1.Secret{Data: map[string][]byte{"TOKEN": []byte("s3cret")}}, nil
		},
		VolumePath: func(name string) (string, bool) { return volume, name == "files" },
	}
}

func pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "worker-0", UID: "u", Labels: map[string]string{"app": "train"}},
		Spec:       corev1.PodSpec{NodeName: "local", ServiceAccountName: "default", EnableServiceLinks: ptr.To(false)},
	}
}

func field(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}
}

func TestVariablesComeFromWhereTheManifestSays(t *testing.T) {
	container := &corev1.Container{
		Name: "main",
		EnvFrom: []corev1.EnvFromSource{
			{Prefix: "CFG_",
				ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "none"},
				Optional: ptr.To(true)}},
		},
		Env: []corev1.EnvVar{
			{Name: "CFG_MODE", Value: "slow"}, // takes precedence over envFrom
			{Name: "MASTER", Value: "worker-0.$(SUBDOMAIN):$(MISSING):$$(RATE):$(CFG_RATE)"},
			{Name: "POD", ValueFrom: field("metadata.name")},
			{Name: "APP", ValueFrom: field("metadata.labels['app']")},
			{Name: "IP", ValueFrom: field("status.podIP")},
			{Name: "HOST", ValueFrom: field("status.hostIP")},
			{Name: "NODE", ValueFrom: field("spec.nodeName")},
			{Name: "CPUS",
				ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
			{Name: "RATE",
				ValueFrom: &corev1.EnvVarSource{
					ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"},
						Key: "RATE"}}},
			{Name: "NO_RATE",
				ValueFrom: &corev1.EnvVarSource{
					ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"},
						Key: "NONE", Optional: ptr.To(true)}}},
			{Name: "FILE", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "files", Path: "vars",
				Key: "FROM_FILE"}}},
		},
	}
	variables, err := Build(pod(), container, facts(t))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, variable := range variables {
		if !strings.HasPrefix(variable.Name, "KUBERNETES_") {
			got[variable.Name] = variable.Value
		}
	}
	want := map[string]string{
		"CFG_MODE": "slow", "CFG_RATE": "0.1", "TOKEN": "s3cret", "MASTER": "worker-0.$(SUBDOMAIN):$(MISSING):$(RATE):0.1",
		"POD": "worker-0", "APP": "train", "IP": "10.64.0.2", "HOST": "192.0.2.1", "NODE": "local",
		"CPUS": "8", "RATE": "0.1",
		"FILE": "in a file",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

func TestServicesAreVariablesIfThePodAsksAndTheAPIServerAlways(t *testing.T) {
	for links, want := range map[bool][]string{
		false: {"KUBERNETES_SERVICE_HOST=10.96.0.1"},
		true:  {"KUBERNETES_SERVICE_HOST=10.96.0.1", "WEB_SERVICE_HOST=10.96.0.2"},
	} {
		pod := pod()
		pod.Spec.EnableServiceLinks = &links
		variables, err := Build(pod, &corev1.Container{}, facts(t))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, variable := range variables {
			if strings.HasSuffix(variable.Name, "_SERVICE_HOST") {
				got = append(got, variable.Name+"="+variable.Value)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with service links %v (-want +got):\n%s", links, diff)
		}
	}
}

func TestMissingSourcesOfVariablesAreNamed(t *testing.T) {
	name := func(n string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: n} }
	for what, test := range map[string]struct {
		source corev1.EnvVarSource
		want   string
	}{
		"a ConfigMap": {corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: name("none"),
			Key: "K"}}, `configmaps "none" not found`},
		"a key": {corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: name("settings"),
			Key: "K"}}, "couldn't find key K in ConfigMap ml/settings"},
		"a secret": {corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: name("none"),
			Key: "K"}}, `secrets "none" not found`},
		"a volume": {corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "v", Path: "p", Key: "k"}},
			`cannot find the volume "v"`},
	} {
		_, err := Build(pod(), &corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: &test.source}}}, facts(t))
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "variable X") {
			t.Errorf("missing %s: got error %v, want %q", what, err, test.want)
		}
	}
}
