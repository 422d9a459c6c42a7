package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

const (
	pool      = "example.com/pool" // its value is a flavor
	rack      = "example.com/rack"
	simulated = "muster.dev/simulated"

	nodesOfRack = 4
	cpusOfNode  = 4
	gpusOfNode  = 2

	gpu corev1.ResourceName = "nvidia.com/gpu"
	// theDefault is the name of the queue whose quota follows the nodes, and of its LocalQueue.
	theDefault = "default"
)

// classes are the WorkloadPriorityClasses, by their suffix.
var classes = map[string]int32{"low": -10, "normal": 0, "high": 10}

// node is a simulated node. Its object is missing while it is gone.
type node struct {
	name, rack, flavor string
	state              nodeState
}

type nodeState string

const (
	up       nodeState = "up"
	cordoned nodeState = "cordoned"
	silent   nodeState = "silent"
	gone     nodeState = "gone"
)

// queue is a ClusterQueue, and the LocalQueue of its short name that points to it.
type queue struct {
	*kueue.ClusterQueue
	short string
	// nominal is its quota of CPUs in each flavor, except while the round has lowered it.
	nominal int64
}

// build creates the round's racks, queues and priorities, and writes the configuration of its operators.
func (r *round) build() {
	flavors := []string{r.Namespace + "-a"}
	if r.chance(40) {
		flavors = append(flavors, r.Namespace+"-b")
	}
	r.racks = 2 + r.IntN(3)
	r.elastic = r.chance(80)
	r.placed = r.chance(85)
	r.gpus = r.chance(50)
	r.followsNodes = r.placed && r.chance(25)
	r.plans = r.chance(60)
	for i := range r.racks {
		for k := range nodesOfRack {
			n := &node{name: fmt.Sprintf("%s-r%d-%d", r.Namespace, i, k), rack: fmt.Sprintf("r%d", i),
				flavor: flavors[i%len(flavors)], state: up}
			r.nodes = append(r.nodes, n)
			r.createNode(n)
		}
	}
	r.Shared(&kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace},
		Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: rack}, {NodeLabel: corev1.LabelHostname}}}})
	for _, name := range flavors {
		flavor := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{pool: name},
				Tolerations: []corev1.Toleration{{Key: simulated, Operator: corev1.TolerationOpExists}}}}
		if r.placed {
			flavor.Spec.TopologyName = ptr.To(kueue.TopologyReference(r.Namespace))
		}
		r.Shared(flavor)
	}
	for suffix, value := range classes {
		r.Shared(&kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace + "-" + suffix}, Value: value})
	}
	if r.followsNodes {
		r.queues = []*queue{{ClusterQueue: &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: theDefault}},
			short: theDefault}}
		r.createLocalQueue(r.queues[0])
	} else {
		r.buildQueues(flavors)
	}
	r.letPodsLast()
	r.configure()
}

// buildQueues creates two cohorts in one, with queues whose quota together is about what the nodes have: without
// places no more, because then only quota keeps jobs from nodes that are full.
func (r *round) buildQueues(flavors []string) {
	for _, name := range []string{r.Namespace, r.Namespace + "-left", r.Namespace + "-right"} {
		cohort := &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if name != r.Namespace {
			cohort.Spec.ParentName = kueue.CohortReference(r.Namespace)
		}
		r.Shared(cohort)
	}
	count := 2 + r.IntN(4)
	share := int64(r.racks * nodesOfRack * cpusOfNode / count / len(flavors))
	var check kueue.AdmissionCheckReference
	if r.chance(40) {
		check = r.createCheck()
	}
	for i := range count {
		q := &queue{short: fmt.Sprintf("q%d", i), nominal: share}
		if r.placed {
			q.nominal = max(2, share*int64(60+r.IntN(80))/100)
		}
		q.ClusterQueue = &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace + "-" + q.short},
			Spec: kueue.ClusterQueueSpec{
				Cohort:            kueue.CohortReference(r.Namespace + one(r, "-left", "-right")),
				NamespaceSelector: &metav1.LabelSelector{},
				QueueingStrategy:  one(r, kueue.StrictFIFO, kueue.BestEffortFIFO, kueue.BestEffortFIFO),
				ResourceGroups:    []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{corev1.ResourceCPU}}},
				Preemption: &kueue.ClusterQueuePreemption{
					WithinClusterQueue: one(r, kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority,
						kueue.PreemptionPolicyLowerOrNewerEqualPriority),
					ReclaimWithinCohort: one(r, kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority,
						kueue.PreemptionPolicyAny),
				},
			}}
		if r.plans && q.Spec.QueueingStrategy == kueue.BestEffortFIFO && r.chance(80) {
			q.Annotations = map[string]string{muster.BackfillAnnotation: "true",
				muster.DefaultDurationAnnotation: one(r, "10s", "1m", "1h")}
		}
		group := &q.Spec.ResourceGroups[0]
		if r.gpus {
			group.CoveredResources = append(group.CoveredResources, gpu)
		}
		for _, flavor := range flavors {
			quota := kueue.ResourceQuota{Name: corev1.ResourceCPU,
				NominalQuota: *resource.NewQuantity(q.nominal, resource.DecimalSI)}
			if r.chance(30) {
				quota.BorrowingLimit = resource.NewQuantity(int64(r.IntN(8)), resource.DecimalSI)
			}
			if r.chance(30) {
				quota.LendingLimit = resource.NewQuantity(r.Int64N(q.nominal), resource.DecimalSI)
			}
			resources := []kueue.ResourceQuota{quota}
			if r.gpus {
				resources = append(resources, kueue.ResourceQuota{Name: gpu,
					NominalQuota: *resource.NewQuantity(q.nominal*gpusOfNode/cpusOfNode, resource.DecimalSI)})
			}
			group.Flavors = append(group.Flavors,
				kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(flavor), Resources: resources})
		}
		if check != "" && r.chance(60) {
			q.Spec.AdmissionChecks = []kueue.AdmissionCheckReference{check}
		}
		r.Shared(q.ClusterQueue)
		r.createLocalQueue(q)
		r.queues = append(r.queues, q)
	}
}

func (r *round) createLocalQueue(q *queue) {
	r.Create(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: q.short, Namespace: r.Namespace},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(q.Name)}})
}

// configure writes the configuration of the operators: elastic jobs grow at once or soon, and shares may be fair.
func (r *round) configure() {
	text := "apiVersion: config.muster.dev/v1alpha1\nkind: Configuration\n" +
		"trainingJob: {pendingTimeout: 1m, cooldown: 5s}\n" +
		"elasticity: " + one(r, "{growAfter: 0s, resizeCost: 0s}", "{growAfter: 3s, resizeCost: 1s}") + "\n"
	if r.chance(40) {
		text += "fairSharing: {}\n"
	}
	if r.placed && r.chance(30) {
		text += "waitForPodsReady: {timeout: 20s, blockAdmission: " + one(r, "None", "Queue", "All") +
			", requeuingStrategy: {backoffBaseSeconds: 2, backoffMaxSeconds: 5}}\n"
	}
	if r.plans && r.chance(40) {
		text += "reservations: 3\n"
	}
	path := filepath.Join(r.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
	r.flags = []string{"--config=" + path, "--leader-elect=true"}
	r.Logf("%d racks, %d queues (the quota follows the nodes: %t), GPUs: %t, plans starts: %t, configuration: %s", r.racks,
		len(r.queues), r.followsNodes, r.gpus, r.plans, strings.ReplaceAll(text, "\n", "; "))
}

// createNode creates the object of a node, which is ready.
func (r *round) createNode(n *node) {
	var taints []corev1.Taint
	if !r.followsNodes { // a tainted node counts for no queue that follows nodes
		taints = append(taints, corev1.Taint{Key: simulated, Value: "true", Effect: corev1.TaintEffectNoSchedule})
	}
	allocatable := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpusOfNode, resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")}
	if r.gpus {
		allocatable[gpu] = *resource.NewQuantity(gpusOfNode, resource.DecimalSI)
	}
	o := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{
			corev1.LabelHostname: n.name, corev1.LabelOSStable: "linux", pool: n.flavor, rack: n.rack, simulated: "true"}},
		Spec: corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{Capacity: allocatable, Allocatable: allocatable,
			Conditions: []corev1.NodeCondition{readiness(corev1.ConditionTrue)},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: n.name}}},
	}
	r.Shared(o)
	r.Change(o, func() { o.Spec.Taints = taints }) // without the one that the API server adds to new nodes
}

func readiness(status corev1.ConditionStatus) corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: status, Reason: "Soak", LastTransitionTime: metav1.Now(),
		LastHeartbeatTime: metav1.Now()}
}
