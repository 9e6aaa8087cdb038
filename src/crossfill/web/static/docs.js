// The OpenAPI document as a page to read.
import { byId, h } from "./dom.js";

const schemaName = schema => schema?.$ref?.split("/").pop();

function typeOf(schema) {
  if (!schema) return "";
  if (schema.$ref) return schemaName(schema);
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.enum) return schema.enum.map(value => `"${value}"`).join(" or ");
  if (schema.const !== undefined) return `"${schema.const}"`;
  if (schema.prefixItems) return `[${schema.prefixItems.map(typeOf).join(", ")}]`;
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  return schema.type ?? "";
}

function fields(schema) {
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => h("tr", {},
    h("th", { scope: "row" }, h("code", {}, name)),
    h("td", {}, typeOf(field), (schema.required ?? []).includes(name) ? "" : h("span", { className: "note" }, " optional")),
    h("td", {}, field.description ?? "")));
  return h("div", { className: "scroll" }, h("table", {}, h("thead", { className: "hidden" }, h("tr", {},
    ["Field", "Type", "Meaning"].map(name => h("th", { scope: "col" }, name)))), h("tbody", {}, rows)));
}

function operation(path, method, about, schemas) {
  const sent = about.requestBody?.content?.["application/json"]?.schema;
  const body = sent && { ...schemas[schemaName(sent)], ...sent };
  const done = Object.keys(about.responses).find(status => status.startsWith("2"));
  const answers = Object.entries(about.responses).filter(([status]) => status !== done);
  const answer = about.responses[done]?.content?.["application/json"]?.schema;
  const example = body?.examples?.[0];
  const call = example
    ? `curl ${location.origin}${path} -H 'Content-Type: application/json' -d '${JSON.stringify(example).replaceAll("'", "'\\''")}'`
    : `curl ${location.origin}${path}`;
  return h("section", {},
    h("h2", {}, h("span", { className: "chip seen" }, method.toUpperCase()), " ", h("code", {}, path)),
    h("p", {}, `${about.summary}. ${about.description ?? ""}`),
    h("pre", { tabIndex: 0, role: "region", "aria-label": `Example call of ${path} (${method})` }, call),
    body ? h("h3", {}, "Request") : null, body ? fields(body) : null,
    h("h3", {}, "Answer"), h("p", {}, `${done}: `, schemaName(answer) ? h("a", { href: `#${schemaName(answer)}` }, schemaName(answer))
      : done === "204" ? "nothing" : "JSON"),
    answers.length ? h("ul", {}, answers.map(([status, told]) => h("li", {}, h("b", {}, status), ` ${told.description}`))) : null);
}

try {
  const token = sessionStorage.getItem("token");
  const answer = await fetch("api/openapi.json", token ? { headers: { Authorization: `Bearer ${token}` } } : {});
  if (!answer.ok) throw new Error((await answer.json()).message);
  const found = await answer.json();
  byId("about").textContent = `HTTP API, version ${found.info.version}. ${found.info.description}`;
  const known = found.components?.schemas ?? {};
  const paths = Object.entries(found.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, about]) => operation(path, method, about, known)));
  const schemas = Object.entries(known).map(([name, schema]) =>
    h("section", { id: name }, h("h3", {}, name), h("p", {}, schema.description ?? ""), fields(schema)));
  byId("operations").replaceChildren(...paths, h("h2", {}, "Objects"), ...schemas);
} catch (error) {
  byId("problem").hidden = false;
  byId("problem").querySelector("p").textContent = `The OpenAPI document could not be read: ${error.message}`;
}
