package command

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/api/config/v1alpha1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/testcluster"
)

// queueOf3 creates a queue of 3 CPUs, named after the namespace, and a Workload that holds 2 of them.
func queueOf3(t *testing.T, cluster *testcluster.Cluster, namespace string) {
	t.Helper()
	three := kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(namespace), Resources: []kueue.ResourceQuota{{
		Name: corev1.ResourceCPU, NominalQuota: resource.MustParse("3")}}}
	holder := workload(namespace, "holder", "queue", 1)
	for _, o := range []client.Object{
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{}, ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{corev1.ResourceCPU}, Flavors: []kueue.FlavorQuotas{three}}}}},
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "queue"},
			Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(namespace)}},
		holder,
	} {
		if err := cluster.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	holder.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(namespace),
		PodSetAssignments: []kueue.PodSetAssignment{{
			Name: "main", Count: ptr.To(int32(1)),
			Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{corev1.ResourceCPU: three.Name},
			ResourceUsage: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}}
	for _, kind := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
		holder.Status.Conditions = append(holder.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue,
			Reason: kind, LastTransitionTime: metav1.Now()})
	}
	if err := cluster.Client.Status().Update(t.Context(), holder); err != nil {
		t.Fatal(err)
	}
}

func TestExplainOnACluster(t *testing.T) {
	cluster := testcluster.Get(t)
	namespace := cluster.Namespace(t)
	queueOf3(t, cluster, namespace)
	waiting := workload(namespace, "waiting", "queue", 1)
	if err := cluster.Client.Create(t.Context(), waiting); err != nil {
		t.Fatal(err)
	}
	mistaken(t, cluster, namespace)
	refused(t, cluster, namespace)
	may(t, cluster, namespace, "guest", "workloads", "localqueues", "jobsets", "jobs", "pods")

	tests := []struct {
		name      string
		arguments []string
		code      int
		out       []string
	}{
		{"a waiting job", []string{"workload", "waiting"}, exitFailed, []string{
			namespace + "/workload/waiting is pending", "WaitingForQuota", "position 1 of 1",
			"1 of 3 cpu free, 1 more needed",
			"held by   " + namespace + "/workload/holder  2 cpu (priority 0, cannot be preempted: withinClusterQueue is Never, and it has the same priority)",
			"would fit after the end of " + namespace + "/workload/holder"}},
		{"an admitted job", []string{"workload/holder"}, exitDone, []string{"is admitted"}},
		{"an invalid job", []string{"job/mistaken"}, exitFailed,
			[]string{"no Workload yet", "told      InvalidJob at 2026-01-02 03:04:05 UTC: Mend this."}},
		{"a JobSet whose Job may not create its pods", []string{"jobset/refused"}, exitDone, []string{
			"is starting", "told      FailedCreate at 2026-01-02 03:04:05 UTC: The pods of refused-w-0 are forbidden."}},
		{"a LatticeJob whose VCJob may not create its pods", []string{"latticejob/refused"}, exitFailed, []string{
			"told      FailedCreate at 2026-01-02 03:04:05 UTC: The pods of refused are forbidden."}},
		{"a user who may not read events", []string{"job/mistaken", "--as", "guest"}, exitFailed,
			[]string{"no Workload yet"}},
		{"a user with rights in one namespace", []string{"waiting", "--as", "guest"}, exitFailed, []string{
			"waits for its first decision", "unseen    you may not list all workloads, localqueues, clusterqueues, cohorts, resourceflavors, admissionchecks, namespaces",
			"next      muster kubectl describe localqueue queue -n " + namespace}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, out, errOut := muster(t, cluster, append([]string{"explain", "-n", namespace}, test.arguments...)...)
			if code != test.code || errOut != "" {
				t.Errorf("exit code %d, want %d; error output %q", code, test.code, errOut)
			}
			for _, part := range test.out {
				if !strings.Contains(out, part) {
					t.Errorf("output does not have %q:\n%s", part, out)
				}
			}
		})
	}

	explainUnderThePublished(t, cluster, namespace)

	// Jobs are listed too, except kinds that the user may not list.
	code, out, errOut := muster(t, cluster, "jobs", "-n", namespace, "--as", "guest")
	if code != exitDone || !strings.Contains(out, "workload/waiting") || !strings.Contains(out, "job/mistaken") ||
		!strings.HasPrefix(errOut, "muster: you may not list genericjobs, trainingjobs, latticejobs: ") {
		t.Errorf("a user with rights for few kinds: exit code %d\n%s%s", code, out, errOut)
	}

	// ClusterQueues are cluster-scoped: a namespace in -n does not help.
	for _, how := range []string{"--watch=false", "--watch"} {
		code, _, errOut = muster(t, cluster, "queues", "-n", namespace, "--as", "guest", how)
		if code != exitFailed ||
			!strings.Contains(errOut, "queues are summed from ClusterQueues and the Workloads of all namespaces") ||
			strings.Contains(errOut, "look at a namespace of yours with -n") {
			t.Errorf("queues %s for a user with rights in one namespace: exit code %d\n%s", how, code, errOut)
		}
	}

	_, out, _ = muster(t, cluster, "explain", "-n", namespace, "waiting", "-o", "json")
	var explained view.Explanation
	if err := json.Unmarshal([]byte(out), &explained); err != nil || explained.WhyNot == nil ||
		explained.WhyNot.Code != reason.WaitingForQuota {
		t.Errorf("explanation as JSON: error %v: %s", err, out)
	}
}

// mistaken creates a Job with a Warning event, a Normal event, and a Warning event of an earlier Job of the same name.
func mistaken(t *testing.T, cluster *testcluster.Cluster, namespace string) {
	t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mistaken",
		Labels: map[string]string{kueue.QueueLabel: "queue"}}}
	job.Spec.Suspend, job.Spec.Template.Spec.RestartPolicy = ptr.To(true), corev1.RestartPolicyNever
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	if err := cluster.Client.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	tell(t, cluster, job, job.UID, corev1.EventTypeWarning, "InvalidJob", "Mend this.")
	tell(t, cluster, job, job.UID, corev1.EventTypeNormal, "InvalidJob", "All is well.")
	tell(t, cluster, job, "another", corev1.EventTypeWarning, "InvalidJob", "Mend that.")
}

// tell creates an event about the Job or VCJob, or about one of that name with another UID.
func tell(t *testing.T, cluster *testcluster.Cluster, job client.Object, uid types.UID, kind, reason, message string) {
	t.Helper()
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: job.GetNamespace(), GenerateName: "told-"}, Type: kind,
		Reason: reason, Message: message,
		InvolvedObject: corev1.ObjectReference{Kind: "Job", Namespace: job.GetNamespace(), Name: job.GetName(), UID: uid},
		LastTimestamp:  metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	if err := cluster.Client.Create(t.Context(), event); err != nil {
		t.Fatal(err)
	}
}

// refused creates a JobSet with a Job, and a LatticeJob with a VCJob, whose pods the API server refuses: the Warning
// events are those of the Job and of the VCJob.
func refused(t *testing.T, cluster *testcluster.Cluster, namespace string) {
	t.Helper()
	create := func(object client.Object, owner client.Object, of schema.GroupVersionKind) {
		t.Helper()
		object.SetNamespace(namespace)
		if owner != nil {
			object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, of)})
		}
		if err := cluster.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	named := metav1.ObjectMeta{Name: "refused"}

	set := &jobset.JobSet{ObjectMeta: named}
	set.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: "w", Replicas: 1,
		Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pod}}}}
	create(set, nil, schema.GroupVersionKind{})
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "refused-w-0",
		Labels: map[string]string{jobset.JobSetNameKey: set.Name}}, Spec: batchv1.JobSpec{Template: pod}}
	create(job, set, jobset.GroupVersion.WithKind("JobSet"))
	tell(t, cluster, job, job.UID, corev1.EventTypeWarning, "FailedCreate", "The pods of refused-w-0 are forbidden.")

	lj := &lattice.LatticeJob{ObjectMeta: named}
	lj.Spec.Tasks = map[string]lattice.JobTaskSpec{}
	create(lj, nil, schema.GroupVersionKind{})
	vcjob := &volcano.Job{ObjectMeta: named}
	vcjob.Spec.Tasks = []volcano.TaskSpec{{Name: "t", Replicas: 1, Template: pod}}
	create(vcjob, lj, lattice.GroupVersion.WithKind("LatticeJob"))
	tell(t, cluster, vcjob, vcjob.UID, corev1.EventTypeWarning, "FailedCreate", "The pods of refused are forbidden.")
}

// explainUnderThePublished checks that the published configuration is used, and that its absence is reported.
func explainUnderThePublished(t *testing.T, cluster *testcluster.Cluster, namespace string) {
	t.Helper()
	undeclared := workload(namespace, "undeclared", "queue", 1)
	undeclared.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests["example.com/license"] =
		resource.MustParse("1")
	if err := cluster.Client.Create(t.Context(), undeclared); err != nil {
		t.Fatal(err)
	}
	_, out, _ := muster(t, cluster, "explain", "-n", namespace, "undeclared")
	for _, part := range []string{"resource example.com/license unavailable in ClusterQueue",
		"assumed   the default configuration: the operator has not published its own"} {
		if !strings.Contains(out, part) {
			t.Errorf("before the configuration is published, the output does not have %q:\n%s", part, out)
		}
	}
	cfg := config.Default()
	cfg.Resources.QuotaCheckStrategy = ptr.To(v1alpha1.IgnoreUndeclared)
	published, err := config.Published(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.Create(t.Context(), published); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Client.Delete(context.Background(), published); err != nil {
			t.Error(err)
		}
	})
	_, out, _ = muster(t, cluster, "explain", "-n", namespace, "undeclared")
	if strings.Contains(out, "license unavailable") || strings.Contains(out, "assumed") {
		t.Errorf("after the configuration is published, the output is\n%s", out)
	}
}

// may grants a user the right to list the resources in a namespace, and nothing else.
func may(t *testing.T, cluster *testcluster.Cluster, namespace, user string, resources ...string) {
	t.Helper()
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"*"}, Resources: resources, Verbs: []string{"list"}}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}}},
	} {
		if err := cluster.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		cluster.UntilObserved(t, o)
	}
}
