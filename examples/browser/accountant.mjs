// Loads the accountant into a runtime of Pyodide. No data leave the page.

export async function accountant(pyodide, wheel, source) {
  await pyodide.loadPackage(["numpy", "scipy"]);
  pyodide.unpackArchive(wheel, "whl");
  const names = pyodide.globals.get("dict")();
  pyodide.runPython(source, { globals: names });
  return names.get("figure");
}
