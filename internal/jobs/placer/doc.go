// Package placer gives gated pods their places: the pods of jobs whose template cannot
// say where each of them goes. It reads the places in the Workload's admission and which
// of them have a live pod, and gives each waiting pod one in one write, which adds the
// node selector and removes the gate. Pods that are where their admission, after a
// repair, has no place for them any more are deleted, never by force.
//
// Which pod gets which place is a function of what was seen: by the cache, or in the API
// server itself where the cache may lack places that were given. That is so until a write
// was answered, since another operator may have placed pods a moment ago, and while the
// answer to a write is missing. The API server takes the place of a pod only while its
// gate is there, so no pod is given two.
package placer
