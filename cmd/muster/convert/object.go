package convert

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

const (
	v1beta2  = "kueue.x-k8s.io/v1beta2"
	v1alpha1 = "kueue.x-k8s.io/v1alpha1" // of Cohorts and Topologies
)

// kinds holds what differs in the specs of each kind that Muster serves, nil if nothing does.
var kinds = map[string]func(spec fields){
	"AdmissionCheck":        nil,
	"ClusterQueue":          func(spec fields) { spec.rename("cohortName", "cohort") },
	"Cohort":                func(spec fields) { spec.rename("parent", "parentName") },
	"LocalQueue":            nil,
	"ResourceFlavor":        nil,
	"Topology":              nil,
	"Workload":              workload,
	"WorkloadPriorityClass": nil,
}

// object converts the object, or the objects of a list, and reports whether it converted any. The status goes: no
// client can apply it, and it has other names too.
func object(o fields, note func(string)) bool {
	if items := o.get("items"); items != nil && items.Kind == yaml.SequenceNode {
		some := false
		for _, item := range items.Content {
			some = object(fields{item}, note) || some
		}
		if version := o.get("apiVersion"); some && version != nil && isFormer(version.Value) {
			version.SetString(kueue.GroupVersion.String()) // a ClusterQueueList, for instance
		}
		return some
	}
	version, kind := o.get("apiVersion"), o.text("kind")
	if version == nil || !isFormer(version.Value) {
		return false
	}
	convert, served := kinds[kind]
	if !served {
		note(fmt.Sprintf("%s %s: Muster does not serve this kind, it is left as it is", kind,
			fields{o.get("metadata")}.text("name")))
		return false
	}
	version.SetString(kueue.GroupVersion.String())
	if spec := (fields{o.get("spec")}); convert != nil {
		convert(spec)
	}
	o.remove("status")
	return true
}

func isFormer(version string) bool { return version == v1beta2 || version == v1alpha1 }

func workload(spec fields) {
	class := fields{spec.get("priorityClassRef")}
	if class.Node == nil {
		return
	}
	source := kueue.WorkloadPriorityClassSource
	if class.text("kind") == "PriorityClass" {
		source = kueue.PodPriorityClassSource
	}
	name := class.text("name")
	spec.remove("priorityClassRef")
	spec.add("priorityClassName", name)
	spec.add("priorityClassSource", source)
}

// fields is a YAML mapping, or nothing.
type fields struct{ *yaml.Node }

// index returns the index of the field's name in Content, -1 if there is none; its value follows.
func (f fields) index(name string) int {
	if f.Node == nil || f.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i < len(f.Content); i += 2 {
		if f.Content[i].Value == name {
			return i
		}
	}
	return -1
}

// get returns the value of the field, nil if there is none.
func (f fields) get(name string) *yaml.Node {
	if i := f.index(name); i >= 0 {
		return f.Content[i+1]
	}
	return nil
}

// text returns the scalar value of the field, "" if there is none.
func (f fields) text(name string) string {
	if value := f.get(name); value != nil {
		return value.Value
	}
	return ""
}

func (f fields) rename(from, to string) {
	if i := f.index(from); i >= 0 {
		f.Content[i].Value = to
	}
}

func (f fields) remove(name string) {
	if i := f.index(name); i >= 0 {
		f.Content = slices.Delete(f.Content, i, i+2)
	}
}

func (f fields) add(name, value string) {
	var key, text yaml.Node
	key.SetString(name)
	text.SetString(value)
	f.Content = append(f.Content, &key, &text)
}
