package execnode

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	componentversion "k8s.io/component-base/version"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/restartallcontainers"
)

// register creates the Node, and waits until pods can be scheduled to it. Nothing is written about the node afterwards:
// there are no heartbeats.
func (n *Node) register(ctx context.Context) error {
	wanted := n.object()
	nodes := n.client.CoreV1().Nodes()
	// Created with its status: a node that is not Ready at first would be tainted and untainted.
	_, err := nodes.Create(ctx, wanted, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		err = n.takeOver(ctx, wanted)
	case err != nil:
		err = fmt.Errorf("registering the node: %w", err)
	}
	if err != nil {
		return err
	}
	return n.awaitSchedulable(ctx)
}

// declaredFeatures are features that kube-scheduler requires of a node for pods that need them: the kubelet's runtime
// manager, which decides about restarts, can restart all containers of a pod.
var declaredFeatures = []string{restartallcontainers.RestartAllContainersOnContainerExits}

// object returns the Node to register.
func (n *Node) object() *corev1.Node {
	now := metav1.Now()
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus,
		reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now,
			LastTransitionTime: now}
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.config.Name,
			Labels: map[string]string{
				corev1.LabelHostname: n.config.Name, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
			},
		},
		Status: corev1.NodeStatus{
			Capacity: n.capacity, Allocatable: n.capacity,
			// The API server connects to the node's own server by this address.
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: loopback}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(n.server.port)}},
			NodeInfo: corev1.NodeSystemInfo{
				KernelVersion: kernelVersion(), OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
				OSImage:                 "processes of this machine",
				ContainerRuntimeVersion: n.kubelet.runtimeVersion(), KubeletVersion: componentversion.Get().GitVersion,
			},
			DeclaredFeatures: declaredFeatures,
			Conditions: []corev1.NodeCondition{
				condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "NotMeasured", "this node does not measure it"),
				condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "NotMeasured", "this node does not measure it"),
				condition(corev1.NodePIDPressure, corev1.ConditionFalse, "NotMeasured", "this node does not measure it"),
				condition(corev1.NodeReady, corev1.ConditionTrue, "ProcessesRun",
					"this node runs containers as processes and sends no heartbeats"),
			},
		},
	}
}

// takeOver updates the Node of an earlier run, if it differs.
func (n *Node) takeOver(ctx context.Context, wanted *corev1.Node) error {
	nodes := n.client.CoreV1().Nodes()
	old, err := nodes.Get(ctx, n.config.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the node of an earlier run: %w", err)
	}
	labelled := old.DeepCopy()
	if labelled.Labels == nil {
		labelled.Labels = map[string]string{}
	}
	maps.Copy(labelled.Labels, wanted.Labels)
	if err := n.patch(ctx, old, labelled); err != nil {
		return err
	}
	current := old.DeepCopy()
	current.Status = *wanted.Status.DeepCopy()
	current.Status.Conditions = keepTimes(wanted.Status.Conditions, old.Status.Conditions)
	return n.patch(ctx, old, current, "status")
}

// keepTimes returns the new conditions. A condition whose status has not changed keeps its time.
func keepTimes(conditions, before []corev1.NodeCondition) []corev1.NodeCondition {
	conditions = slices.Clone(conditions)
	for i := range conditions {
		for _, old := range before {
			if old.Type == conditions[i].Type && old.Status == conditions[i].Status {
				conditions[i].LastHeartbeatTime, conditions[i].LastTransitionTime = old.LastHeartbeatTime, old.LastTransitionTime
			}
		}
	}
	return conditions
}

func (n *Node) patch(ctx context.Context, from, to *corev1.Node, subresources ...string) error {
	if equality.Semantic.DeepEqual(from, to) {
		return nil
	}
	before, err := json.Marshal(from)
	if err != nil {
		return err
	}
	after, err := json.Marshal(to)
	if err != nil {
		return err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Node{})
	if err != nil {
		return fmt.Errorf("comparing the node with the one of an earlier run: %w", err)
	}
	_, err = n.client.CoreV1().Nodes().Patch(ctx, from.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, subresources...)
	if err != nil {
		return fmt.Errorf("updating the node of an earlier run: %w", err)
	}
	return nil
}

// awaitSchedulable waits until the cluster's controllers have removed the taints of a new node.
func (n *Node) awaitSchedulable(ctx context.Context) error {
	source := cache.NewListWatchFromClient(n.client.CoreV1().RESTClient(), "nodes", metav1.NamespaceAll,
		fields.OneTermEqualSelector(metav1.ObjectNameField, n.config.Name))
	_, err := watchtools.UntilWithSync(ctx, source, &corev1.Node{}, nil, func(event watch.Event) (bool, error) {
		node, ok := event.Object.(*corev1.Node)
		return ok && !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
			return taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable
		}), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the controllers of the cluster to let pods onto the node: %w", err)
	}
	return nil
}
