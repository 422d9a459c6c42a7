package chart

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/internal/testcluster"
)

const (
	tested           = "v1.37.1" // the version of Kubernetes for which most tests render
	mutatingPolicies = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
)

// combinations are sets of values that change what is rendered.
var combinations = map[string]values{
	"defaults": {},
	"every value of the reference chart": {
		"affinity": values{"nodeAffinity": values{
			"requiredDuringSchedulingIgnoredDuringExecution": values{"nodeSelectorTerms": []any{
				values{"matchExpressions": []any{values{"key": "kubernetes.io/os", "operator": "In",
					"values": []any{"linux"}}}}}}}},
		"group": "training.example.com", "image": "registry.example.com:5000/lattice/operator:1.2",
		"imagePullPolicy":  "Always",
		"monitorNamespace": "ml", "nodeSelector": values{"eks.amazonaws.com/nodegroup": "Group1"}, "replicaCount": 1,
		"resources": values{"limits": values{"cpu": "100m", "memory": "128Mi"},
			"requests": values{"cpu": "100m", "memory": "128Mi"}},
		"service": values{"enablePrometheus": true, "externalPort": 9090, "internalPort": 9091,
			"probePort": 9092, "type": "NodePort"},
		"terminationGracePeriodSeconds": 30, "license": "a key",
		"jfrog": values{"secretName": "a", "dockerSecretName": "b", "username": "me", "password": "secret"},
	},
	"every value of Muster's own": {
		"nameOverride": "muster", "imagePullSecrets": []any{values{"name": "registry"}},
		"config": values{"batchJob": values{"webhook": true}, "placement": values{"webhook": true},
			"latticejob": values{"immutable": "deny"}, "volcano": "native"},
		"tolerations": []any{values{"key": "a", "operator": "Exists"}}, "priorityClassName": "system-cluster-critical",
		"topologySpreadConstraints": []any{values{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}},
		"podAnnotations":            values{"a": "b"}, "podLabels": values{"c": "d"},
		"extraArgs": []any{"--zap-log-level=debug"},
		"dashboard": values{"enabled": true, "namespace": "default", "labels": values{"g": "h"},
			"annotations": values{"i": "j"}},
		"podDisruptionBudget": values{"enabled": false}, "rendezvous": values{"enabled": true, "port": 7000},
		"webhook":        values{"port": 7001},
		"tracing":        values{"endpoint": "http://collector:4318", "sampling": 0.25},
		"serviceAccount": values{"create": true, "name": "someone", "annotations": values{"e": "f"}},
	},
	"everything optional off": {
		"replicaCount": 0, "rendezvous": values{"enabled": false}, "serviceAccount": values{"create": false},
		"rbac": values{"create": false, "aggregate": false},
		"crds": values{"install": false}, "resources": values{"limits": nil, "requests": nil},
		"config": values{"volcano": "external"},
	},
}

// TestHelmLintPasses runs `helm lint --strict` with all combinations.
func TestHelmLintPasses(t *testing.T) {
	for what, with := range combinations {
		if err := lint(with); err != nil {
			t.Errorf("%s: helm lint --strict: %v", what, err)
		}
	}
}

// TestAPIServerAcceptsEveryObject applies every rendered object as a dry run.
func TestAPIServerAcceptsEveryObject(t *testing.T) {
	cluster := testcluster.Get(t)
	for _, in := range []string{namespace, "ml"} { // the operator's namespace, and that of monitorNamespace
		err := cluster.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for what, with := range combinations {
		t.Run(what, func(t *testing.T) {
			text, err := render(t, tested, with, mutatingPolicies)
			if err != nil {
				t.Fatal(err)
			}
			objects := decode(t, text)
			for _, o := range objects {
				err := cluster.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.DryRunAll,
					client.FieldOwner("test"), client.ForceOwnership)
				if err != nil {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
				}
			}
			t.Logf("%d objects", len(objects))
		})
	}
}

// decode returns the objects of a manifest.
func decode(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096); ; {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			t.Fatal(err)
		case len(object.Object) > 0:
			out = append(out, object)
		}
	}
}

// find returns the object of the kind and name, nil if there is none.
func find(t *testing.T, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	return nil
}

// TestDeploymentHasTheDocumentedName checks the default name of the Deployment, and that nameOverride replaces it.
func TestDeploymentHasTheDocumentedName(t *testing.T) {
	for want, with := range map[string]values{"lattice-operator": {}, "other": {"nameOverride": "other"}} {
		text, err := render(t, tested, with)
		if err != nil {
			t.Fatal(err)
		}
		if find(t, decode(t, text), "Deployment", want) == nil {
			t.Errorf("with values %v there is no Deployment %s", with, want)
		}
	}
}

// TestClustersThatAreTooOldAreRejected renders the chart for a version before the chart's kubeVersion.
func TestClustersThatAreTooOldAreRejected(t *testing.T) {
	_, err := render(t, "v1.29.9", nil)
	if err == nil || !strings.Contains(err.Error(), "kubeVersion") || !strings.Contains(err.Error(), "1.29") {
		t.Errorf("rendering for v1.29.9 returned %v, want an error about kubeVersion", err)
	}
}

// TestOldestKubernetesGetsOnlyAPIsItServes renders the chart for the oldest supported version, which has no
// MutatingAdmissionPolicies. The tests of local/internal/rules check that it accepts the ValidatingAdmissionPolicies.
func TestOldestKubernetesGetsOnlyAPIsItServes(t *testing.T) {
	text, err := render(t, "v1.30.0", nil)
	if err != nil {
		t.Fatal(err)
	}
	objects := decode(t, text)
	if find(t, objects, "ValidatingAdmissionPolicy", "muster-workload-admission") == nil {
		t.Error("there is no ValidatingAdmissionPolicy muster-workload-admission")
	}
	for _, o := range objects {
		if strings.HasPrefix(o.GetKind(), "MutatingAdmissionPolicy") {
			t.Errorf("v1.30 does not serve the rendered %s %s", o.GetKind(), o.GetName())
		}
	}
}

// TestInvalidValuesAreRejected checks that an error names each invalid value, before anything is installed.
func TestInvalidValuesAreRejected(t *testing.T) {
	for what, test := range map[string]struct {
		with values
		want string
	}{
		"unknown value": {values{"replicas": 3}, "replicas"},
		"group set twice": {values{"config": values{"trainingJob": values{"group": "other.ai"}}},
			"set group alone"},
		"user name without password": {values{"jfrog": values{"username": "me"}}, "set both"},
		"account without registry":   {values{"jfrog": values{"username": "me", "password": "secret"}}, "names none"},
		"sampling above 1":           {values{"tracing": values{"sampling": 2}}, "tracing.sampling"},
		"sampling as a string":       {values{"tracing": values{"sampling": "0.0"}}, "tracing.sampling"},
		"port out of range":          {values{"rendezvous": values{"port": 70000}}, "rendezvous.port"},
		"port used twice": {values{"rendezvous": values{"port": 8080}},
			"service.internalPort and rendezvous.port are both 8080"},
		"monitor without metrics": {values{"serviceMonitor": values{"enabled": true}}, "service.enablePrometheus is false"},
		"section without values":  {values{"service": nil}, "missing property 'service'"},
		"webhooks without values": {values{"webhook": nil, "config": values{"batchJob": values{"webhook": true}}},
			"missing property 'webhook'"},
	} {
		if _, err := render(t, tested, test.with); err == nil ||
			!strings.Contains(strings.ReplaceAll(err.Error(), "/", "."), test.want) {
			t.Errorf("%s: rendering returned %v, want an error with %q", what, err, test.want)
		}
	}
}

// TestEmptyConfigurationIsTheDefault checks that config, a section of it, or a value may be left empty, as in a file
// whose lines below it are all commented out.
func TestEmptyConfigurationIsTheDefault(t *testing.T) {
	for what, with := range map[string]values{
		"config": {"config": nil},
		"sections": {"config": values{"batchJob": nil, "placement": nil, "latticejob": nil, "defaultQueue": nil,
			"trainingJob": nil}},
		"volcano": {"config": values{"volcano": nil}},
	} {
		text, err := render(t, tested, with)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if objects := decode(t, text); find(t, objects, "Deployment", "lattice-operator") == nil {
			t.Errorf("%s: there is no Deployment", what)
		}
	}
}

// TestGroupOfTrainingJobsIsTheSameEverywhere checks that the value group replaces breezeml.ai in every object.
func TestGroupOfTrainingJobsIsTheSameEverywhere(t *testing.T) {
	text, err := render(t, tested, values{"group": "training.example.com"}, mutatingPolicies)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "breezeml.ai") {
		at := strings.Index(text, "breezeml.ai")
		t.Errorf("the manifest still has the group breezeml.ai: …%s…", text[max(0, at-200):at+100])
	}
	if strings.Contains(text, "TRAINING_JOB_GROUP") || !strings.Contains(text, "startsWith('training.example.com/')") {
		t.Error("the policy of Workloads does not have the group training.example.com")
	}
	if find(t, decode(t, text), "CustomResourceDefinition", "trainingjobs.training.example.com") == nil {
		t.Error("there is no definition of TrainingJobs in the group training.example.com")
	}
}

// TestOperatorPodsMeetTheRestrictedStandard checks the security context of the operator's pods, which namespaces that
// enforce the Pod Security Standard "restricted" must accept.
func TestOperatorPodsMeetTheRestrictedStandard(t *testing.T) {
	text, err := render(t, tested, nil)
	if err != nil {
		t.Fatal(err)
	}
	pod, _, _ := unstructured.NestedMap(find(t, decode(t, text), "Deployment", "lattice-operator").Object, "spec",
		"template", "spec")
	podSecurity, _, _ := unstructured.NestedMap(pod, "securityContext")
	containers, _, _ := unstructured.NestedSlice(pod, "containers")
	security, _, _ := unstructured.NestedMap(containers[0].(map[string]any), "securityContext")
	drop, _, _ := unstructured.NestedStringSlice(security, "capabilities", "drop")
	profile, _, _ := unstructured.NestedString(podSecurity, "seccompProfile", "type")
	if podSecurity["runAsNonRoot"] != true || profile != "RuntimeDefault" || security["readOnlyRootFilesystem"] != true ||
		security["allowPrivilegeEscalation"] != false || len(drop) != 1 || drop[0] != "ALL" {
		t.Errorf("the security context of pods is %v, of containers %v; want those of the restricted standard", podSecurity, security)
	}
}

// TestOperatorAcceptsTheFlagsOfTheChart checks the flags of all combinations, and that the chart enables tracing only
// on request.
func TestOperatorAcceptsTheFlagsOfTheChart(t *testing.T) {
	for what, with := range combinations {
		text, err := render(t, tested, with)
		if err != nil {
			t.Fatal(err)
		}
		var flags []string
		for _, o := range decode(t, text) {
			if o.GetKind() == "Deployment" {
				containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
				flags, _, _ = unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
			}
		}
		if traced := slices.Contains(flags, "--trace-endpoint=http://collector:4318"); traced != (with["tracing"] != nil) {
			t.Errorf("%s: jobs are traced = %t, want %t", what, traced, with["tracing"] != nil)
		}
		// --print-config makes the operator validate its flags, print and exit. The configuration file exists only in
		// its pod.
		output, err := exec.Command("../../bin/muster-operator",
			append(flags, "--config=", "--print-config")...).CombinedOutput()
		if err != nil || len(flags) < 4 {
			t.Errorf("%s: the operator does not accept the flags %q: %v\n%s", what, flags, err, output)
		}
	}
}
