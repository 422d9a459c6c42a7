package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/api/config/v1alpha1"
)

// header is the beginning of a configuration file.
const header = "apiVersion: config.muster.dev/v1alpha1\nkind: Configuration\n"

func TestAFileWithoutOptionsIsTheDefault(t *testing.T) {
	want := &v1alpha1.Configuration{
		TypeMeta: metav1.TypeMeta{APIVersion: "config.muster.dev/v1alpha1", Kind: "Configuration"},
		WaitForPodsReady: &v1alpha1.WaitForPodsReady{
			Enable: ptr.To(true), Timeout: duration(30 * time.Minute), RecoveryTimeout: duration(30 * time.Minute),
			BlockAdmission: ptr.To(v1alpha1.BlockNone),
			RequeuingStrategy: &v1alpha1.RequeuingStrategy{Timestamp: ptr.To(v1alpha1.EvictionTimestamp),
				BackoffBaseSeconds: ptr.To[int32](60), BackoffMaxSeconds: ptr.To[int32](3600)},
		},
		ObjectRetentionPolicies: &v1alpha1.ObjectRetentionPolicies{Workloads: &v1alpha1.WorkloadRetentionPolicy{}},
		Resources:               &v1alpha1.Resources{QuotaCheckStrategy: ptr.To(v1alpha1.BlockUndeclared)},
		QueueStatus:             &v1alpha1.QueueStatus{Interval: duration(5 * time.Second)},
		BatchJob:                &v1alpha1.BatchJob{Webhook: ptr.To(false)},
		DefaultQueue: &v1alpha1.DefaultQueue{Capacity: ptr.To(v1alpha1.CapacityNodes),
			NodesOnDemand: ptr.To(v1alpha1.NodesOnDemandDetect)},
		NodeFailure: &v1alpha1.NodeFailure{NotReadyGrace: duration(5 * time.Second)},
		Gangs:       &v1alpha1.Gangs{Native: ptr.To(v1alpha1.NativeGangsAuto)},
		Volcano:     ptr.To(v1alpha1.VolcanoAuto),
		Placement:   &v1alpha1.Placement{Webhook: ptr.To(false)},
		TrainingJob: &v1alpha1.TrainingJob{Group: ptr.To("breezeml.ai"), PendingTimeout: duration(5 * time.Minute),
			Cooldown: duration(3 * time.Hour)},
		Elasticity: &v1alpha1.Elasticity{GrowAfter: duration(30 * time.Second), ResizeCost: duration(30 * time.Second)},
		Backfill:   ptr.To(v1alpha1.BackfillNone), Reservations: ptr.To[int32](1),
		LatticeJob: &v1alpha1.LatticeJob{Immutable: ptr.To(v1alpha1.ImmutableWarn), GPUs: ptr.To(v1alpha1.GPUResourcesAuto),
			RequireMesh: ptr.To(false), RequireTracing: ptr.To(false), SpreadBy: ptr.To("kubernetes.io/hostname")},
	}
	if diff := cmp.Diff(want, Default()); diff != "" {
		t.Errorf("Default() (-want +got):\n%s", diff)
	}
	for name, text := range map[string]string{
		"only a header":           header,
		"a leading separator":     "# what we decided\n---\n" + header,
		"sections that are empty": header + "waitForPodsReady: {}\nobjectRetentionPolicies:\nresources: {transformations: []}\nqueueStatus: null\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := parse([]byte(text))
			if problems != nil {
				t.Fatalf("rejected: %q", problems)
			}
			got.Resources.Transformations = nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGivenOptionsAreUsed(t *testing.T) {
	type check struct {
		text string
		want any
		got  func(*v1alpha1.Configuration) any
	}
	for name, tc := range map[string]check{
		"the recovery timeout follows the timeout": {"waitForPodsReady: {timeout: 5m}", duration(5 * time.Minute),
			func(c *v1alpha1.Configuration) any { return c.WaitForPodsReady.RecoveryTimeout }},
		"a recovery timeout of its own": {"waitForPodsReady: {timeout: 5m, recoveryTimeout: 90s}", duration(90 * time.Second),
			func(c *v1alpha1.Configuration) any { return c.WaitForPodsReady.RecoveryTimeout }},
		"waiting for ready pods switched off": {"waitForPodsReady: {enable: false}", ptr.To(false),
			func(c *v1alpha1.Configuration) any { return c.WaitForPodsReady.Enable }},
		"Kueue's true for blockAdmission": {"waitForPodsReady: {blockAdmission: true}", ptr.To(v1alpha1.BlockAll),
			func(c *v1alpha1.Configuration) any { return c.WaitForPodsReady.BlockAdmission }},
		"Kueue's false for blockAdmission": {"waitForPodsReady: {blockAdmission: false}", ptr.To(v1alpha1.BlockNone),
			func(c *v1alpha1.Configuration) any { return c.WaitForPodsReady.BlockAdmission }},
		"Kueue's afterDeactivatedByKueue": {"objectRetentionPolicies: {workloads: {afterDeactivatedByKueue: 1h}}",
			duration(time.Hour),
			func(c *v1alpha1.Configuration) any {
				return c.ObjectRetentionPolicies.Workloads.AfterDeactivatedByMuster
			}},
		"fair sharing tries both strategies": {"fairSharing: {}",
			[]v1alpha1.PreemptionStrategy{"LessThanOrEqualToFinalShare", "LessThanInitialShare"},
			func(c *v1alpha1.Configuration) any { return c.FairSharing.PreemptionStrategies }},
		"Kueue's enable: true of fair sharing": {"fairSharing: {enable: true, preemptionStrategies: [LessThanInitialShare]}",
			[]v1alpha1.PreemptionStrategy{"LessThanInitialShare"},
			func(c *v1alpha1.Configuration) any { return c.FairSharing.PreemptionStrategies }},
		"Kueue's enable: false of fair sharing": {"fairSharing: {enable: false}", (*v1alpha1.FairSharing)(nil),
			func(c *v1alpha1.Configuration) any { return c.FairSharing }},
		"admission fair sharing samples each 5 minutes": {
			"admissionFairSharing: {usageHalfLifeTime: 24h, resourceWeights: {cpu: 0.5, example.com/gpu: 3}}",
			&v1alpha1.AdmissionFairSharing{UsageHalfLifeTime: *duration(24 * time.Hour),
				UsageSamplingInterval: duration(5 * time.Minute),
				ResourceWeights:       map[corev1.ResourceName]float64{"cpu": 0.5, "example.com/gpu": 3}},
			func(c *v1alpha1.Configuration) any { return c.AdmissionFairSharing }},
		"a transformation retains its input": {
			"resources: {transformations: [{input: nvidia.com/mig-1g.5gb, outputs: {example.com/memory: 5Gi, example.com/slices: 1}}]}",
			[]v1alpha1.ResourceTransformation{{Input: "nvidia.com/mig-1g.5gb", Strategy: ptr.To(v1alpha1.Retain),
				Outputs: corev1.ResourceList{
					"example.com/memory": resource.MustParse("5Gi"), "example.com/slices": resource.MustParse("1")}}},
			func(c *v1alpha1.Configuration) any { return c.Resources.Transformations }},
	} {
		t.Run(name, func(t *testing.T) {
			c, problems := parse([]byte(header + tc.text))
			if problems != nil {
				t.Fatalf("rejected: %q", problems)
			}
			if diff := cmp.Diff(tc.want, tc.got(c)); diff != "" {
				t.Errorf("option (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOtherFilesAreRefusedWithAHint(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"an empty file": {"", []string{
			"apiVersion: Required value: write apiVersion: config.muster.dev/v1alpha1",
			"kind: Required value: write kind: Configuration"}},
		"a file of Kueue": {"apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration", []string{
			`apiVersion: Unsupported value: "config.kueue.x-k8s.io/v1beta1": supported values: "config.muster.dev/v1alpha1"`}},
		"another kind": {"apiVersion: config.muster.dev/v1alpha1\nkind: 3", []string{
			`kind: Unsupported value: 3: supported values: "Configuration"`}},
		"a list": {"- a\n", []string{
			"it is not a mapping of options: begin it with the lines `apiVersion: config.muster.dev/v1alpha1` and `kind: Configuration`"}},
		"invalid YAML": {"a: [", []string{
			"it cannot be read: yaml: line 1: did not find expected node content"}},
		"an infinite number": {header + "admissionFairSharing: {resourceWeights: {cpu: .inf}}", []string{
			"it cannot be read: json: unsupported value: +Inf"}},
		"two documents": {header + "---\n" + header, []string{
			"it holds 2 documents: keep one, without `---` between its options"}},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, tc.text, tc.want...) })
	}
}

func TestUnreadableValuesAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"an unknown section": {"webhook: {}", []string{
			"webhook: Forbidden: there is no such option; the options here are waitForPodsReady, objectRetentionPolicies, fairSharing, admissionFairSharing, resources, queueStatus, batchJob, defaultQueue, nodeFailure, gangs, volcano, latticejob, placement, trainingJob, elasticity, backfill, reservations"}},
		"an unknown option": {"queueStatus: {intervall: 1s}", []string{
			"queueStatus.intervall: Forbidden: there is no such option; the options here are interval"}},
		"an option in the wrong case": {"queueStatus: {Interval: 1s}", []string{
			"queueStatus.Interval: Forbidden: there is no such option; the options here are interval"}},
		"a key given twice": {"queueStatus:\n  interval: 1s\n  interval: 2s\n", []string{
			`line 5: key "interval" already set in map: keep one of the two`}},
		"text for a switch": {"batchJob: {webhook: maybe}", []string{
			`batchJob.webhook: Invalid value: "maybe": must be true or false`}},
		"a number for a duration": {"queueStatus: {interval: 5}", []string{
			"queueStatus.interval: Invalid value: 5: must be a duration with its unit, such as 30m, 1h30m or 5s"}},
		"a duration without a unit": {`waitForPodsReady: {timeout: "30"}`, []string{
			`waitForPodsReady.timeout: Invalid value: "30": must be a duration with its unit, such as 30m, 1h30m or 5s`}},
		"a count beyond int32": {"waitForPodsReady: {requeuingStrategy: {backoffLimitCount: 2147483648}}", []string{
			"waitForPodsReady.requeuingStrategy.backoffLimitCount: Invalid value: 2147483648: must be a whole number that is not above 2147483647"}},
		"a fraction of a count": {"waitForPodsReady: {requeuingStrategy: {backoffMaxSeconds: 1.5}}", []string{
			"waitForPodsReady.requeuingStrategy.backoffMaxSeconds: Invalid value: 1.5: must be a whole number that is not above 2147483647"}},
		"text for a weight": {"admissionFairSharing: {resourceWeights: {cpu: much}}", []string{
			`admissionFairSharing.resourceWeights[cpu]: Invalid value: "much": must be a number`}},
		"a weight without a value": {"admissionFairSharing: {resourceWeights: {cpu: }}", []string{
			"admissionFairSharing.resourceWeights[cpu]: Required value: give it a value, or leave the name out"}},
		"a number for a name": {"resources: {quotaCheckStrategy: 1}", []string{
			"resources.quotaCheckStrategy: Invalid value: 1: must be text"}},
		"an invalid quantity": {"resources: {transformations: [{input: cpu, outputs: {example.com/a: 5 Gi}}]}", []string{
			`resources.transformations[0].outputs[example.com/a]: Invalid value: "5 Gi": must be a quantity, such as 2, 500m or 1Gi`}},
		"a list for a mapping": {"queueStatus: [1s]", []string{
			`queueStatus: Invalid value: ["1s"]: must be a mapping of options`}},
		"a list for a mapping of names": {"admissionFairSharing: {resourceWeights: [cpu]}", []string{
			`admissionFairSharing.resourceWeights: Invalid value: ["cpu"]: must be a mapping`}},
		"text for a list": {"resources: {excludeResourcePrefixes: example.com}", []string{
			`resources.excludeResourcePrefixes: Invalid value: "example.com": must be a list`}},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, header+tc.text, tc.want...) })
	}
}

func TestAllProblemsAreReported(t *testing.T) {
	refuses(t, `apiVersion: config.muster.dev/v1
waitForPodsReady:
  enable: true
  enable: false
  timeout: soon
  requeuingStrategy: {timestamp: Now, backoffMaxSeconds: many}
objectRetentionPolicies: {workloads: {afterDeactivatedByKueue: -1h}}
queueStatus: {interval: -1s, often: true}
`,
		`line 4: key "enable" already set in map: keep one of the two`,
		`apiVersion: Unsupported value: "config.muster.dev/v1": supported values: "config.muster.dev/v1alpha1"`,
		"kind: Required value: write kind: Configuration",
		`waitForPodsReady.timeout: Invalid value: "soon": must be a duration with its unit, such as 30m, 1h30m or 5s`,
		`waitForPodsReady.requeuingStrategy.backoffMaxSeconds: Invalid value: "many": must be a whole number that is not above 2147483647`,
		"queueStatus.often: Forbidden: there is no such option; the options here are interval",
		`waitForPodsReady.requeuingStrategy.timestamp: Unsupported value: "Now": supported values: "Eviction", "Creation"`,
		`objectRetentionPolicies.workloads.afterDeactivatedByKueue: Invalid value: "-1h0m0s": must be 0s or longer`,
		`queueStatus.interval: Invalid value: "-1s": must be 0s or longer`)
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "muster.yaml")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a missing file: %v, want an error that names it", err)
	}
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(header + "queueStatus: {interval: 1s}")
	if c, err := Load(path); err != nil || c.QueueStatus.Interval.Duration != time.Second {
		t.Errorf("Load = %+v, %v", c, err)
	}
	write("kind: Configuration\nqueueStatus: {often: true}")
	want := "the configuration in " + path + " is invalid; fix this and start again:\n" +
		"  apiVersion: Required value: write apiVersion: config.muster.dev/v1alpha1\n" +
		"  queueStatus.often: Forbidden: there is no such option; the options here are interval"
	if _, err := Load(path); err == nil || err.Error() != want {
		t.Errorf("Load of a wrong file:\n%v\nwant\n%s", err, want)
	}
}

func duration(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func accepts(t *testing.T, text string) {
	t.Helper()
	if _, problems := parse([]byte(text)); problems != nil {
		t.Errorf("rejected:\n%s\n%s", text, strings.Join(problems, "\n"))
	}
}

func refuses(t *testing.T, text string, want ...string) {
	t.Helper()
	_, problems := parse([]byte(text))
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got) with:\n%s\n%s", text, diff)
	}
}
