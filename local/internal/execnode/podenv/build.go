package podenv

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	podshelper "k8s.io/kubernetes/pkg/apis/core/pods"
	"k8s.io/kubernetes/pkg/fieldpath"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/envvars"
	envfile "k8s.io/kubernetes/pkg/kubelet/util/env"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
	"k8s.io/utils/ptr"
)

// Facts are what variables may refer to besides the pod.
type Facts struct {
	HostIP string
	PodIPs []string
	// Allocatable stands in for limits that a container does not have.
	Allocatable corev1.ResourceList
	// Services of the cluster. The services that a pod sees become variables.
	Services []*corev1.Service
	// ConfigMap and Secret read objects. For one that does not exist they return the API's NotFound error.
	ConfigMap func(namespace, name string) (*corev1.ConfigMap, error)
	Secret    func(namespace, name string) (*corev1.Secret, error)
	// VolumePath gives the directory of one of the pod's volumes.
	VolumePath func(volume string) (string, bool)
}

// Build returns the variables of a container, sorted by name. An error names the object or key that is missing.
func Build(pod *corev1.Pod, container *corev1.Container, facts Facts) ([]kubecontainer.EnvVar, error) {
	b := &builder{pod: pod, container: container, facts: facts, set: map[string]string{}}
	for _, variable := range envvars.FromServices(visible(facts.Services, pod)) {
		if b.services == nil {
			b.services = map[string]string{}
		}
		b.services[variable.Name] = variable.Value
	}
	for _, from := range container.EnvFrom {
		if err := b.addAll(from); err != nil {
			return nil, err
		}
	}
	expand := expansion.MappingFuncFor(b.set, b.services)
	for _, variable := range container.Env {
		value, present := variable.Value, true
		var err error
		if value != "" {
			value = expansion.Expand(value, expand)
		} else if variable.ValueFrom != nil {
			value, present, err = b.valueFrom(variable.ValueFrom)
		}
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", variable.Name, err)
		}
		if present {
			b.set[variable.Name] = value
		}
	}
	all := b.services
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b.set)
	var list []kubecontainer.EnvVar
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, kubecontainer.EnvVar{Name: name, Value: all[name]})
	}
	return list, nil
}

// visible returns the services that a pod has variables for: always the API server's, and the services of its namespace
// if it asks for them.
func visible(services []*corev1.Service, pod *corev1.Pod) []*corev1.Service {
	byName := map[string]*corev1.Service{}
	for _, service := range services {
		if service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone {
			continue
		}
		switch {
		case service.Namespace == corev1.NamespaceDefault && service.Name == "kubernetes":
			if byName[service.Name] == nil {
				byName[service.Name] = service
			}
		case service.Namespace == pod.Namespace && ptr.Deref(pod.Spec.EnableServiceLinks, true):
			byName[service.Name] = service
		}
	}
	return slices.Collect(maps.Values(byName))
}

type builder struct {
	pod       *corev1.Pod
	container *corev1.Container
	facts     Facts
	set       map[string]string
	services  map[string]string
}

// addAll adds all keys of a ConfigMap or Secret.
func (b *builder) addAll(from corev1.EnvFromSource) error {
	switch {
	case from.ConfigMapRef != nil:
		configMap, err := b.facts.ConfigMap(b.pod.Namespace, from.ConfigMapRef.Name)
		if err != nil {
			return unlessOptional(err, from.ConfigMapRef.Optional)
		}
		for key, value := range configMap.Data {
			b.set[from.Prefix+key] = value
		}
	case from.SecretRef != nil:
		secret, err := b.facts.Secret(b.pod.Namespace, from.SecretRef.Name)
		if err != nil {
			return unlessOptional(err, from.SecretRef.Optional)
		}
		for key, value := range secret.Data {
			b.set[from.Prefix+key] = string(value)
		}
	}
	return nil
}

func unlessOptional(err error, optional *bool) error {
	if apierrors.IsNotFound(err) && ptr.Deref(optional, false) {
		return nil
	}
	return err
}

// valueFrom returns a variable's value from its source, and false if the source is optional and missing.
func (b *builder) valueFrom(from *corev1.EnvVarSource) (string, bool, error) {
	switch {
	case from.FieldRef != nil:
		value, err := b.field(from.FieldRef)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err := b.resource(from.ResourceFieldRef)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		configMap, err := b.facts.ConfigMap(b.pod.Namespace, ref.Name)
		if err != nil {
			return "", false, unlessOptional(err, ref.Optional)
		}
		value, ok := configMap.Data[ref.Key]
		return value, ok, missingKey(ok, ref.Optional, "ConfigMap", b.pod.Namespace, ref.Name, ref.Key)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		secret, err := b.facts.Secret(b.pod.Namespace, ref.Name)
		if err != nil {
			return "", false, unlessOptional(err, ref.Optional)
		}
		value, ok := secret.Data[ref.Key]
		return string(value), ok, missingKey(ok, ref.Optional, "Secret", b.pod.Namespace, ref.Name, ref.Key)
	case from.FileKeyRef != nil:
		return b.fileKey(from.FileKeyRef)
	default:
		return "", true, nil
	}
}

func missingKey(found bool, optional *bool, kind, namespace, name, key string) error {
	if found || ptr.Deref(optional, false) {
		return nil
	}
	return fmt.Errorf("couldn't find key %v in %s %v/%v", key, kind, namespace, name)
}

// field returns a field of the pod. Fields that are known here before they are in the API come from the facts.
func (b *builder) field(ref *corev1.ObjectFieldSelector) (string, error) {
	path, _, err := podshelper.ConvertDownwardAPIFieldLabel(ref.APIVersion, ref.FieldPath, "")
	if err != nil {
		return "", err
	}
	switch path {
	case "spec.nodeName":
		return b.pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return b.pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return b.facts.HostIP, nil
	case "status.podIP":
		if len(b.facts.PodIPs) == 0 {
			return "", nil
		}
		return b.facts.PodIPs[0], nil
	case "status.podIPs":
		return strings.Join(b.facts.PodIPs, ","), nil
	}
	return fieldpath.ExtractFieldPathAsString(b.pod, path)
}

func (b *builder) resource(ref *corev1.ResourceFieldSelector) (string, error) {
	if ref.ContainerName == "" {
		container := b.container.DeepCopy()
		resource.MergeContainerResourceLimits(container, b.facts.Allocatable)
		return resource.ExtractContainerResourceValue(ref, container)
	}
	return resource.ExtractResourceValueByContainerNameAndNodeAllocatable(ref, b.pod, ref.ContainerName,
		b.facts.Allocatable)
}

func (b *builder) fileKey(ref *corev1.FileKeySelector) (string, bool, error) {
	directory, ok := b.facts.VolumePath(ref.VolumeName)
	if !ok {
		return "", false, fmt.Errorf("cannot find the volume %q referenced by FileKeyRef", ref.VolumeName)
	}
	path, err := securejoin.SecureJoin(directory, ref.Path)
	if err != nil {
		return "", false, err
	}
	value, err := envfile.ParseEnv(path, ref.Key)
	if err != nil {
		return "", false, fmt.Errorf("reading key %q from file %q of volume %q: %w", ref.Key, ref.Path, ref.VolumeName, err)
	}
	if value == "" && !ptr.Deref(ref.Optional, false) {
		return "", false, fmt.Errorf("environment variable key %q not found in file %q of volume %q", ref.Key,
			ref.Path, ref.VolumeName)
	}
	return value, value != "", nil
}
