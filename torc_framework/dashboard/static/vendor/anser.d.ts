export { default } from "anser";
