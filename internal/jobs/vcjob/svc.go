package vcjob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/replicas"
)

// pluginFailedReason is the reason of the event for a plugin's object that could not be changed. One that could not be
// created is reported like pods that could not, as there are no pods without it: the job then gives its quota back.
const pluginFailedReason = "PluginError"

// hostsFolder is where pods find the host names of each task, in one file per task.
const hostsFolder = "/etc/volcano"

// svc gives pods host names, in files and variables too, and blocks traffic from other pods. Arguments
// disable the variables, and the blocking.
func svc(arguments map[string]string) effect {
	return effect{
		change: func(job *volcano.Job, r *replicas.Replica, spec *corev1.PodSpec) {
			addHosts(job, r, spec)
			if isTrue(arguments["inject-hosts-env"]) {
				addHostsEnv(job, spec)
			}
		},
		lists: func(job *volcano.Job) (out []hostList) {
			for name := range tasksIn(job) {
				if isTrue(arguments["inject-hosts-env"]) {
					out = append(out, hostList{variable: hostsVariable(name), tasks: []string{name}, perHost: len(","),
						remedy: ": with --inject-hosts-env=false pods have them in files only"})
				}
			}
			return out
		},
		objects: func(v *view) []write.Write {
			out := []write.Write{
				createOrWarn(hostsConfigMap(v)),
				createOrWarn(headlessService(v, isTrue(arguments["publish-not-ready-addresses"]))),
			}
			if !isTrue(arguments["disable-network-policy"]) {
				out = append(out, createOrWarn(networkPolicy(v)))
			}
			return out
		},
	}
}

func isTrue(text string) bool {
	is, err := strconv.ParseBool(text)
	return err == nil && is
}

func hostsConfigMapName(job *volcano.Job) string { return job.Name + "-svc" }

// variableOf returns the name of a task as part of a variable's name.
func variableOf(task string) string { return strings.ToUpper(strings.ReplaceAll(task, "-", "_")) }

// hostsVariable returns the name of the variable that lists the hosts of a task.
func hostsVariable(task string) string { return "VC_" + variableOf(task) + "_HOSTS" }

func addHosts(job *volcano.Job, r *replicas.Replica, spec *corev1.PodSpec) {
	if spec.Hostname == "" {
		spec.Hostname = r.Name
	}
	if spec.Subdomain == "" {
		spec.Subdomain = job.Name
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: hostsConfigMapName(job), VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: hostsConfigMapName(job)}}}})
	mount(spec, corev1.VolumeMount{Name: hostsConfigMapName(job), MountPath: hostsFolder})
}

func addHostsEnv(job *volcano.Job, spec *corev1.PodSpec) {
	from := func(key string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: hostsConfigMapName(job)}, Key: key}}
	}
	for c := range podspec.Containers(spec) {
		for task := range tasksIn(job) {
			hosts, number := hostsVariable(task), "VC_"+variableOf(task)+"_NUM"
			addEnv(c, corev1.EnvVar{Name: hosts, ValueFrom: from(hosts)})
			addEnv(c, corev1.EnvVar{Name: number, ValueFrom: from(number)})
		}
	}
}

// hostsConfigMap returns the ConfigMap with the host names of each task. Volcano writes - as _ in the names
// of files; the unchanged name works as well.
func hostsConfigMap(v *view) *corev1.ConfigMap {
	data := map[string]string{}
	for task := range tasksIn(v.job) {
		hosts := hostsOf(v.job, task)
		data[task+".host"] = strings.Join(hosts, "\n")
		data[strings.ReplaceAll(task, "-", "_")+".host"] = data[task+".host"]
		data[hostsVariable(task)] = strings.Join(hosts, ",")
		data["VC_"+variableOf(task)+"_NUM"] = strconv.Itoa(len(hosts))
	}
	return &corev1.ConfigMap{ObjectMeta: v.owned(hostsConfigMapName(v.job)), Data: data}
}

const (
	// hostsKey, in status.controlledResources, is the size of each task in the hosts that were written
	// last for a job that was changed, as in "ps=1;worker=2".
	hostsKey = "muster.dev/hosts"
	// hostsManager is the field manager of updated hosts.
	hostsManager = "muster-vcjob-hosts"
)

// updateHosts updates the hosts to the current sizes of tasks. Running pods see them in their files, as elastic Horovod
// needs; new pods get them in their variables, too. A job that was never changed has the right hosts from its start.
func (o *objects) updateHosts() {
	var sizes []string
	for name, task := range tasksIn(o.job) {
		sizes = append(sizes, fmt.Sprintf("%s=%d", name, countOf(task)))
	}
	before, now := o.job.Status.ControlledResources[hostsKey], strings.Join(sizes, ";")
	hasHosts := slices.ContainsFunc(o.plugins(), func(p effect) bool { return p.name == "svc" })
	if !hasHosts || o.job.Generation <= 1 || before == now {
		return
	}
	setRecord(&o.job.Status, hostsKey, now)
	update := write.Apply(hostsConfigMap(o.view), hostsManager).OrWarn(pluginFailedReason).
		OrRevert(func(status client.Object) {
			setRecord(&status.(*volcano.Job).Status, hostsKey, before)
		})
	o.plan.AddFirst(update)
}

// podsOf returns the selector of the job's pods.
func podsOf(job *volcano.Job) map[string]string {
	return map[string]string{volcano.JobNameKey: job.Name, volcano.JobNamespaceKey: job.Namespace}
}

// headlessService returns the Service that gives pods host names. It needs a port, on which nothing listens.
func headlessService(v *view, notReady bool) *corev1.Service {
	return &corev1.Service{ObjectMeta: v.owned(v.job.Name), Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Selector: podsOf(v.job), PublishNotReadyAddresses: notReady,
		Ports: []corev1.ServicePort{{Name: "placeholder-volcano", Port: 1, Protocol: corev1.ProtocolTCP,
			TargetPort: intstr.FromInt32(1)}},
	}}
}

// networkPolicy returns the NetworkPolicy that admits only traffic from the job's own pods.
func networkPolicy(v *view) *networkingv1.NetworkPolicy {
	own := metav1.LabelSelector{MatchLabels: podsOf(v.job)}
	return &networkingv1.NetworkPolicy{ObjectMeta: v.owned(v.job.Name), Spec: networkingv1.NetworkPolicySpec{
		PodSelector: own, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &own}}}},
	}}
}
