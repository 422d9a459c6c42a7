package compile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// MissingServiceError says that a job calls a service that the graph does not have.
type MissingServiceError struct{ Service ServiceKey }

func (m *MissingServiceError) Error() string {
	return fmt.Sprintf("service '%s/%s' does not exist", m.Service.Namespace, m.Service.Name)
}

// meshVersion is the apiVersion of members of the mesh.
const meshVersion = "lattice.dev/v1alpha1"

// anyService is the id of a service resource that stands for all of them.
const anyService = "*"

// calls reports whether the task calls the service.
func (d *dependency) calls() bool { return d.Direction != lattice.Inbound && d.ID != anyService }

// maxServices is how many services the tasks of a job may call together. Each is looked up whenever the job is
// reconciled.
const maxServices = 128

// ServicesOf are the services that the job's tasks call, of which the graph must say their ports. There are none if
// they are too many, so that the job cannot be compiled.
func ServicesOf(job *lattice.LatticeJob) []ServiceKey {
	tasks, err := Tasks(Outline(job))
	if err != nil {
		return nil
	}
	called := servicesOf(job.Namespace, tasks)
	if len(called) > maxServices {
		return nil
	}
	return called
}

// servicesOf are the services that tasks of the namespace call, but not services with an invalid name, with which no
// job compiles.
func servicesOf(namespace string, tasks map[string]lattice.JobTaskSpec) []ServiceKey {
	found := map[ServiceKey]bool{}
	for _, task := range tasks {
		for name, spec := range task.Workload.Resources {
			d := dependency{name: name, ResourceSpec: &spec}
			if spec.Type != lattice.ServiceResource || !d.calls() {
				continue
			}
			if key := d.key(namespace); len(validation.IsDNS1123Label(key.Name)) == 0 {
				found[key] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), compareKeys)
}

func compareKeys(a, b ServiceKey) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// key is the service that a resource means in a job of the namespace.
func (d *dependency) key(namespace string) ServiceKey {
	return ServiceKey{Namespace: cmp.Or(d.Namespace, namespace), Name: cmp.Or(d.ID, d.name)}
}

// PortsOf returns the ports in the service graph of the job's task, and false if the job has no task of that name.
// Other tasks of the job cost nothing.
func PortsOf(job *lattice.LatticeJob, task string) ([]ServicePort, bool) {
	spec, there := job.Spec.Tasks[task]
	if !there {
		return nil, false
	}
	alone := &lattice.LatticeJob{}
	alone.Spec.Tasks = map[string]lattice.JobTaskSpec{
		task: {Workload: lattice.WorkloadSpec{Service: spec.Workload.Service}}}
	if defaults := job.Spec.Defaults; defaults != nil {
		alone.Spec.Defaults = &lattice.JobTaskSpec{Workload: lattice.WorkloadSpec{Service: defaults.Workload.Service}}
	}
	tasks, err := Tasks(alone)
	if err != nil {
		return nil, false
	}
	spec = tasks[task]
	return taskPorts(&spec), true
}

// taskPorts returns the ports of the task's pods in the service graph.
func taskPorts(spec *lattice.JobTaskSpec) []ServicePort {
	var out []ServicePort
	for name, port := range inOrder(portsOf(spec.Workload.Service)) {
		out = append(out, ServicePort{Name: name, Port: port.Port})
	}
	return out
}

// readService looks up the service in the graph, which includes the job's own tasks.
func (t *task) readService(d *dependency) error {
	d.service = d.key(t.job.Namespace)
	d.abroad = d.service.Namespace != t.job.Namespace
	if !d.calls() {
		return nil
	}
	if len(validation.IsDNS1123Label(d.service.Name)) > 0 {
		return fmt.Errorf("the id of a service must be a DNS label, not %q", shortened(d.service.Name))
	}
	if d.service.Namespace == t.job.Namespace {
		if name, ours := strings.CutPrefix(d.service.Name, t.job.Name+"-"); ours {
			if spec, ok := t.tasks[name]; ok {
				d.ports = taskPorts(&spec)
				return nil
			}
		}
	}
	ports, there := t.facts.Services[d.service]
	if !there && !t.facts.AnyService {
		return &MissingServiceError{d.service}
	}
	d.ports = ports
	return nil
}

// servicePort returns the port named http, or else the first one, or else the default port of HTTP.
func (d *dependency) servicePort() int32 {
	for _, p := range d.ports {
		if p.Name == "http" {
			return p.Port
		}
	}
	if len(d.ports) > 0 {
		return d.ports[0].Port
	}
	return 80
}

const entityPrefix = "entity:"

// readExternal reads the endpoints of an external service, or the entity that its id names.
func (t *task) readExternal(d *dependency) (unknown []string, err error) {
	if strings.HasPrefix(d.ID, entityPrefix) {
		_, _, err := entity(d.ID)
		return nil, err
	}
	var params externalParams
	if unknown, err = read(d.Params, &params); err != nil {
		return nil, err
	}
	if params.Resolution != "" && params.Resolution != "dns" && params.Resolution != "static" {
		return nil, fmt.Errorf("params.resolution must be dns or static, not %q", shortened(params.Resolution))
	}
	d.endpoints, err = params.endpoints()
	return unknown, err
}

// entity parses entity:<name>[:port].
func entity(id string) (name string, port int64, err error) {
	name, text, hasPort := strings.Cut(strings.TrimPrefix(id, entityPrefix), ":")
	if len(validation.IsDNS1123Label(name)) > 0 {
		return "", 0, fmt.Errorf("the id %q must be entity:NAME or entity:NAME:PORT", shortened(id))
	}
	port = 443
	if hasPort {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return "", 0, fmt.Errorf("the id %q must be entity:NAME or entity:NAME:PORT", shortened(id))
		}
		port = int64(n)
	}
	return name, port, nil
}

// mesh makes the task a member of the mesh if it has ports or calls a service.
func (t *task) mesh() error {
	ports := meshPorts(t.spec.Workload.Service)
	var callers, dependencies, egress []any
	for _, name := range t.names {
		d := t.resources[name]
		switch d.Type {
		case lattice.ServiceResource:
			ref := map[string]any{"name": d.service.Name, "namespace": d.service.Namespace}
			if d.Direction == lattice.Inbound || d.Direction == lattice.Both {
				callers = append(callers, ref)
			}
			if d.calls() {
				dependencies = append(dependencies, ref)
			}
		case lattice.ExternalServiceResource:
			rules, err := egressOf(d)
			if err != nil {
				return err
			}
			egress = append(egress, rules...)
		}
	}
	if len(ports)+len(callers)+len(dependencies)+len(egress) == 0 {
		return nil
	}
	member := map[string]any{
		"target":         map[string]any{"selector": map[string]any{lattice.NameLabel: t.full}},
		"ports":          list(ports),
		"allowedCallers": list(callers),
		"dependencies":   list(dependencies),
		"egress":         list(egress),
	}
	if t.training != nil {
		// Its pods are outside the ambient mesh, and connect to each other directly.
		member["target"] = map[string]any{"selector": map[string]any{lattice.TrainingJobLabel: t.job.Name}}
		member["allowPeerTraffic"], member["ambient"] = true, false
	}
	t.addOf(MeshMembers, !t.facts.NeedMesh, t.unstructured(meshVersion, MeshMemberKind, t.full, member))
	return nil
}

// MeshMember names the member of the mesh that a task of the job is, if it is any.
func MeshMember(job *lattice.LatticeJob, task string) *unstructured.Unstructured {
	o := MeshMembersIn(job.Namespace)
	o.SetName(job.Name + "-" + task)
	return o
}

// MeshMembersIn names the kind of members of the mesh, in the namespace.
func MeshMembersIn(namespace string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": meshVersion, "kind": MeshMemberKind}}
	o.SetNamespace(namespace)
	return o
}

// list returns the items, and an empty list in place of nil, which would be null in JSON.
func list(items []any) []any {
	if items == nil {
		return []any{}
	}
	return items
}

// portsOf returns the ports of a service, none for nil.
func portsOf(service *lattice.ServiceSpec) map[string]lattice.ServicePort {
	return ptr.Deref(service, lattice.ServiceSpec{}).Ports
}

// meshPorts returns the ports of the service as the mesh is told of them.
func meshPorts(service *lattice.ServiceSpec) []any {
	var out []any
	for name, port := range inOrder(portsOf(service)) {
		out = append(out, map[string]any{"name": name, "port": int64(ptr.Deref(port.TargetPort, port.Port)),
			"peerAuth": "Strict"})
	}
	return out
}

// egressOf are the rules that let a task reach an external service.
func egressOf(d *dependency) ([]any, error) {
	if strings.HasPrefix(d.ID, entityPrefix) {
		name, port, err := entity(d.ID)
		return []any{egressRule(map[string]any{"entity": name}, port)}, err
	}
	if len(d.endpoints) == 0 {
		return nil, errors.New("an external service has no endpoints")
	}
	var out []any
	for _, e := range d.endpoints {
		target := map[string]any{"fqdn": e.host}
		if ip := net.ParseIP(e.host); ip != nil {
			bits := 32
			if ip.To4() == nil {
				bits = 128
			}
			target = map[string]any{"cidr": fmt.Sprintf("%s/%d", e.host, bits)}
		}
		out = append(out, egressRule(target, int64(e.port)))
	}
	return out, nil
}

func egressRule(target map[string]any, port int64) map[string]any {
	return map[string]any{"target": target, "ports": []any{port}, "protocol": string(corev1.ProtocolTCP)}
}
