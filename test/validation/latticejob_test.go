package validation

import (
	"fmt"
	"strings"
)

const (
	latticeTask      = "spec>tasks>main>"
	latticeContainer = latticeTask + "workload>containers>c>"
	latticeDefaults  = "spec>defaults"
)

func latticeJobRules() []rule {
	const of = "LatticeJob"
	resource := func(text string) edits {
		return edits{latticeTask + "workload>resources": "yaml:{r: {" + text + "}}"}
	}
	task := func(field, text string) edits { return edits{latticeTask + field: "yaml:" + text} }
	file := func(text string) edits { return edits{latticeContainer + "files": "yaml:{/f: {" + text + "}}"} }
	return []rule{
		{of, "its tasks have at most 1,024 containers, sidecars, resources and ports, and 4,096 files", inLatticeRules,
			"all tasks together have at most 1024 containers, sidecars, resources and ports, and 4096 files",
			[]attempt{{what: "4,096 files and one of a sidecar",
				change: manyFiles(32, 128).
					with(edits{latticeTask + "sidecars": "yaml:{s: {image: i, files: {/f: {content: a}}}}"})},
				{what: "33 tasks of 32 containers", change: manyContainers(33, 32)}},
			[]attempt{{what: "4,096 files", change: manyFiles(32, 128)},
				{what: "32 tasks of 32 containers", change: manyContainers(32, 32)}}},
		{of, "it has a container in each task", inLatticeRules, "tasks must have a container",
			[]attempt{{what: "none", change: edits{latticeTask + "workload>containers": map[string]any{}}}},
			[]attempt{{what: "one"}, {what: "in the defaults",
				change: edits{latticeTask + "workload>containers": map[string]any{},
					latticeDefaults: "yaml:{workload: {containers: {c: {image: i}}}}"}}}},
		{of, "a container has an image", inLatticeRules, "containers must have an image",
			[]attempt{{what: "none", change: edits{latticeContainer + "image": nil}},
				{what: "a sidecar's", change: task("sidecars", "{s: {command: [/s]}}")}},
			[]attempt{{what: "in the defaults", change: edits{latticeContainer + "image": nil,
				latticeDefaults: "yaml:{workload: {containers: {c: {image: i}}}}"}}}},
		{of, "the coordinator of a training is a task", inLatticeRules,
			"the coordinatorTask of a training must be one of the tasks",
			[]attempt{{what: "the one of the default name", change: edits{"spec>training": "yaml:{}"}},
				{what: "another", change: edits{"spec>training": "yaml:{coordinatorTask: lead}"}}},
			[]attempt{{what: "one", change: edits{"spec>training": "yaml:{coordinatorTask: main}"}}}},
		{of, "tasks of a training are restarted together", inLatticeRules,
			"tasks of a training must have the restartPolicy Never",
			[]attempt{
				{what: "OnFailure", change: edits{"spec>training": "yaml:{coordinatorTask: main}",
					latticeTask + "restartPolicy": "OnFailure"}},
				{what: "in the defaults",
					change: edits{"spec>training": "yaml:{coordinatorTask: main}", latticeDefaults: "yaml:{restartPolicy: Always}"}},
			},
			[]attempt{{what: "Never",
				change: edits{"spec>training": "yaml:{coordinatorTask: main}", latticeTask + "restartPolicy": "Never"}}}},
		{of, "enumerated values of trainings, policies and topologies are those of the API", inSchema, "Unsupported value",
			[]attempt{
				{what: "a framework", change: edits{"spec>training": "yaml:{coordinatorTask: main, framework: MXNet}"}},
				{what: "an event", change: edits{"spec>policies": "yaml:[{event: PodRunning, action: AbortJob}]"}},
				{what: "an action of a task", change: task("policies", "[{event: PodFailed, action: ResumeJob}]")},
				{what: "a mode", change: edits{"spec>topology": "yaml:{mode: hard}"}},
			},
			[]attempt{{what: "all of them", change: edits{"spec>training": "yaml:{coordinatorTask: main, framework: Jax}",
				"spec>policies": "yaml:[{event: Any, action: AbortJob}]", "spec>topology": "yaml:{mode: Soft}"}}}},
		{of, "a timeout is a duration", inSchema, "policies[0].timeout in body should match",
			[]attempt{
				{what: "of the job",
					change: edits{"spec>policies": "yaml:[{event: PodFailed, action: AbortJob, timeout: 5 minutes}]"}},
				{what: "of a task", change: task("policies", "[{event: PodFailed, action: AbortJob, timeout: soon}]")},
			},
			[]attempt{{what: "minutes",
				change: edits{"spec>policies": "yaml:[{event: PodFailed, action: AbortJob, timeout: 5m}]"}}}},
		{of, "a policy for any event is the only one", inCEL, "where a policy is for Any there must be no other",
			[]attempt{
				{what: "of the job",
					change: edits{"spec>policies": "yaml:[{event: Any, action: AbortJob}, {event: PodFailed, action: AbortJob}]"}},
				{what: "of a task", change: task("policies",
					"[{event: PodFailed, action: RestartPod}, {event: '*', action: AbortJob}]")},
			},
			[]attempt{{what: "one of each",
				change: edits{"spec>policies": "yaml:[{event: Any, action: AbortJob}]",
					latticeTask + "policies": "yaml:[{event: PodFailed, action: RestartPod}, {event: PodEvicted, action: AbortJob}]"}}}},
		{of, "a hard topology says how large its domain may be", inCEL, "a topology of mode Hard needs maxTier",
			[]attempt{{what: "nothing", change: edits{"spec>topology": "yaml:{mode: Hard}"}}},
			[]attempt{{what: "a tier", change: edits{"spec>topology": "yaml:{mode: Hard, maxTier: 2}"}}}},
		{of, "fields of a schedule need one", inCEL,
			"concurrencyPolicy, suspend, startingDeadlineSeconds and history limits need a schedule",
			[]attempt{
				{what: "suspend", change: edits{"spec>suspend": true}},
				{what: "a policy", change: edits{"spec>concurrencyPolicy": "Forbid"}},
				{what: "a limit", change: edits{"spec>failedJobsHistoryLimit": 2}},
			},
			[]attempt{{what: "with one", change: edits{"spec>schedule": "@daily", "spec>suspend": true,
				"spec>concurrencyPolicy": "Forbid", "spec>startingDeadlineSeconds": 60}}}},
		{of, "a schedule is neither added nor removed", inCEL,
			"a schedule can be changed, but not given to a job or taken from it",
			[]attempt{
				{what: "given", before: edits{"spec>queue": "q"}, change: edits{"spec>schedule": "@daily"}},
				{what: "taken", before: edits{"spec>schedule": "@daily"}, change: edits{"spec>schedule": nil}},
			},
			[]attempt{{what: "changed", before: edits{"spec>schedule": "@daily"}, change: edits{"spec>schedule": "@hourly"}}}},
		{of, "the restart policy of a task is Never, OnFailure or Always", inSchema, "Unsupported value",
			[]attempt{{what: "ExitCode", change: edits{latticeTask + "restartPolicy": "ExitCode"}}},
			[]attempt{{what: "Always", change: edits{latticeTask + "restartPolicy": "Always"}}}},
		{of, "numbers of pods and retries are not negative", inSchema, "should be greater than or equal to 0",
			[]attempt{{what: "replicas", change: edits{latticeTask + "replicas": -1}},
				{what: "maxRetry", change: edits{"spec>maxRetry": -1}}},
			[]attempt{{what: "0", change: edits{latticeTask + "replicas": 0, "spec>maxRetry": 0}}}},
		{of, "queue is a DNS subdomain", inSchema, "spec.queue in body should match",
			[]attempt{{what: "capitals", change: edits{"spec>queue": "Q"}}},
			[]attempt{{what: "small letters", change: edits{"spec>queue": "q.x"}}}},
		{of, "the number of a port is from 1 to 65535", inSchema, "should be",
			[]attempt{{what: "0", change: task("workload>service", "{ports: {http: {port: 0}}}")},
				{what: "65536", change: task("workload>service", "{ports: {http: {port: 65536}}}")}},
			[]attempt{{what: "80", change: task("workload>service", "{ports: {http: {port: 80, targetPort: 8080}}}")}}},
		{of, "the mode of a file is three or four octal digits", inSchema, "should match '^[0-7]{3,4}$'",
			[]attempt{{what: "89", change: file("content: a, mode: '899'")}},
			[]attempt{{what: "0644", change: file("content: a, mode: '0644'")}}},
		{of, "the type of a resource is a DNS label", inSchema, "should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'",
			[]attempt{{what: "capitals", change: resource("type: Volume")}},
			[]attempt{{what: "one of the user's own", change: resource("type: my-queue, params: {anything: [1]}")}}},
		{of, "it is not in a system namespace", inLatticeRules, "a LatticeJob cannot be in a namespace of the system",
			[]attempt{{what: "kube-public", change: edits{"metadata>namespace": "kube-public"}}},
			[]attempt{{what: "another"}}},
		{of, "names of its parts are DNS labels", inLatticeRules,
			"names of tasks, containers, sidecars, resources and ports must be DNS labels",
			[]attempt{
				{what: "task",
					change: edits{"spec>tasks>Main": "yaml:{workload: {containers: {c: {image: i, resources: {limits: {cpu: 1}}}}}}"}},
				{what: "container",
					change: edits{latticeTask + "workload>containers>C": "yaml:{image: i, resources: {limits: {cpu: 1}}}"}},
				{what: "sidecar", change: task("sidecars", "{a_b: {image: i}}")},
				{what: "resource", change: edits{latticeTask + "workload>resources": "yaml:{R: {type: volume, id: v}}"}},
				{what: "port", change: task("workload>service", "{ports: {HTTP: {port: 80}}}")},
			},
			[]attempt{{what: "digits and dashes", change: task("sidecars", "{0-a: {image: i}}")}}},
		{of, "names of its pods have at most 63 characters", inLatticeRules,
			"the name of the LatticeJob is too long: the names of its pods would exceed 63 characters",
			[]attempt{{what: "64", change: edits{"metadata>name": strings.Repeat("a", 57)}}},
			[]attempt{{what: "63", change: edits{"metadata>name": strings.Repeat("a", 56)}}}},
		{of, "ports have short names and numbers of their own", inLatticeRules,
			"names of ports must have a letter, at most 15 characters and no two '-' in a row, and their numbers must differ",
			[]attempt{
				{what: "no letter", change: task("workload>service", "{ports: {'8080': {port: 80}}}")},
				{what: "two dashes", change: task("workload>service", "{ports: {a--b: {port: 80}}}")},
				{what: "16 characters", change: task("workload>service", "{ports: {abcdefghijklmnop: {port: 80}}}")},
				{what: "a number twice", change: task("workload>service", "{ports: {a: {port: 80}, b: {port: 80}}}")},
			},
			[]attempt{{what: "two", change: task("workload>service", "{ports: {a: {port: 80}, b: {port: 81}}}")}}},
		{of, "an image is the name of one", inLatticeRules, "images must be without spaces and characters of a shell",
			[]attempt{
				{what: "a space", change: edits{latticeContainer + "image": "a b"}},
				{what: "a placeholder", change: edits{latticeContainer + "image": "${image}"}},
				{what: "a sidecar's", change: task("sidecars", "{s: {image: 'a;b'}}")},
			},
			[]attempt{{what: "registry, port, tag and digest",
				change: edits{latticeContainer + "image": "r.example.com:5000/a/b:1.2@sha256:0123"}},
				{what: "a later one", change: edits{latticeContainer + "image": "."}}}},
		{of, "a command is an absolute path", inLatticeRules, "the first word of a command must be an absolute path",
			[]attempt{{what: "sh", change: edits{latticeContainer + "command": []any{"sh"}}},
				{what: "a sidecar's", change: task("sidecars", "{s: {image: i, command: [sh]}}")}},
			[]attempt{{what: "/bin/sh", change: edits{latticeContainer + "command": []any{"/bin/sh", "-c", "true"}}}}},
		{of, "containers have limits", inLatticeRules, "containers must have resources.limits",
			[]attempt{
				{what: "none", change: edits{latticeContainer + "resources": nil}},
				{what: "requests only", change: edits{latticeContainer + "resources": "yaml:{requests: {cpu: 1}}"}},
			},
			[]attempt{{what: "cpu", change: edits{latticeContainer + "resources": "yaml:{limits: {cpu: 100m}}"}}}},
		{of, "amounts are not negative", inLatticeRules, "requests and limits must not be negative",
			[]attempt{
				{what: "a limit", change: edits{latticeContainer + "resources": "yaml:{limits: {cpu: -1}}"}},
				{what: "a request",
					change: edits{latticeContainer + "resources": "yaml:{requests: {memory: -1Gi}, limits: {cpu: 1}}"}},
				{what: "a sidecar's", change: task("sidecars", "{s: {image: i, resources: {limits: {memory: '-1'}}}}")},
			},
			[]attempt{{what: "0",
				change: edits{latticeContainer + "resources": "yaml:{requests: {cpu: 0}, limits: {cpu: '0'}}"}}}},
		{of, "init sidecars have a command", inLatticeRules, "init sidecars must have a command",
			[]attempt{{what: "none", change: task("sidecars", "{s: {image: i, init: true}}")}},
			[]attempt{{what: "one", change: task("sidecars", "{s: {image: i, init: true, command: [/s]}}")}}},
		{of, "a file has one content", inLatticeRules, "a file must have one of content, binaryContent and source",
			[]attempt{{what: "none", change: file("mode: '644'")}, {what: "two", change: file("content: a, source: b")},
				{what: "a sidecar's", change: task("sidecars", "{s: {image: i, files: {/f: {}}}}")}},
			[]attempt{{what: "one", change: file("content: a")}, {what: "an empty one", change: file("content: ''")}}},
		{of, "a file is not world-writable", inLatticeRules,
			"the mode of a file must have no setuid, setgid or sticky bit, and must not let everybody write",
			[]attempt{{what: "666", change: file("content: a, mode: '666'")},
				{what: "4755", change: file("content: a, mode: '4755'")},
				{what: "a sidecar's", change: task("sidecars", "{s: {image: i, files: {/f: {content: a, mode: '777'}}}}")}},
			[]attempt{{what: "0755", change: file("content: a, mode: '0755'")},
				{what: "664", change: file("content: a, mode: '664'")}}},
		{of, "the id of a volume is a DNS label", inLatticeRules,
			"the id of a volume must be a DNS label of at most 50 characters",
			[]attempt{{what: "capitals", change: resource("type: volume, id: V")},
				{what: "51", change: resource("type: volume, id: " + strings.Repeat("v", 51))}},
			[]attempt{{what: "50", change: resource("type: volume, id: " + strings.Repeat("v", 50))}}},
		{of, "a gpu has a count", inLatticeRules, "params.count of a gpu must be a number from 1",
			[]attempt{{what: "no params", change: resource("type: gpu")},
				{what: "0", change: resource("type: gpu, params: {count: 0}")},
				{what: "a word", change: resource("type: gpu, params: {count: two}")}},
			[]attempt{{what: "1", change: resource("type: gpu, params: {count: 1}")}}},
		{of, "compute of a gpu is a percentage", inLatticeRules, "params.compute of a gpu must be a percentage from 1 to 100",
			[]attempt{{what: "0", change: resource("type: gpu, params: {count: 1, compute: 0}")},
				{what: "101", change: resource("type: gpu, params: {count: 1, compute: 101}")}},
			[]attempt{{what: "100", change: resource("type: gpu, params: {count: 1, compute: 100}")}}},
		{of, "memory of a gpu is an amount", inLatticeRules,
			"params.memory of a gpu must be such as 80Gi, 8192Mi or a number of MiB, and at most 1Pi",
			[]attempt{{what: "80GB", change: resource("type: gpu, params: {count: 1, memory: 80GB}")},
				{what: "9999999Gi", change: resource("type: gpu, params: {count: 1, memory: 9999999Gi}")}},
			[]attempt{{what: "80Gi", change: resource("type: gpu, params: {count: 1, memory: 80Gi}")},
				{what: "a number", change: resource("type: gpu, params: {count: 1, memory: 8192}")}}},
		{of, "minAvailable is at most the number of pods", inLatticeRules,
			"minAvailable must be at most the number of pods of all tasks",
			[]attempt{{what: "3", change: edits{"spec>minAvailable": 3}}},
			[]attempt{{what: "2", change: edits{"spec>minAvailable": 2}}}},
	}
}

// latticeJobWarnings are rules that warn: the attempts are taken all the same.
func latticeJobWarnings() []rule {
	running := edits{"status>phase": "Running"}
	return []rule{
		{"LatticeJob", "the spec of one that runs is not changed", inLatticeImmutable,
			"the spec of a LatticeJob cannot be changed once it runs: the change is ignored",
			[]attempt{{what: "replicas", before: running, change: edits{latticeTask + "replicas": 3}},
				{what: "when it has failed", before: edits{"status>phase": "Failed"}, change: edits{"spec>queue": "q"}}},
			[]attempt{{what: "before it runs", before: edits{"status>phase": "Pending"},
				change: edits{latticeTask + "replicas": 3}},
				{what: "its labels", before: running, change: edits{"metadata>labels": map[string]any{"a": "b"}}},
				{what: "of one with a schedule, for its next runs",
					before: edits{"status>phase": "Running", "spec>schedule": "@daily"}, change: edits{"spec>suspend": true}}}},
	}
}

// manyFiles are files in each of so many containers of a task.
func manyFiles(containers, files int) edits {
	all := map[string]any{}
	for i := range containers {
		of := map[string]any{}
		for j := range files {
			of[fmt.Sprintf("/f%d", j)] = map[string]any{"content": "a"}
		}
		all[fmt.Sprintf("c%d", i)] = map[string]any{"image": "i",
			"resources": map[string]any{"limits": map[string]any{"cpu": 1}}, "files": of}
	}
	return edits{"spec>tasks>main>workload>containers": all}
}

// manyContainers are so many tasks of so many containers.
func manyContainers(tasks, containers int) edits {
	all := map[string]any{}
	for i := range tasks {
		of := manyFiles(containers, 0)["spec>tasks>main>workload>containers"]
		all[fmt.Sprintf("t%d", i)] = map[string]any{"workload": map[string]any{"containers": of}}
	}
	return edits{"spec>tasks": all}
}
